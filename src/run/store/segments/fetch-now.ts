import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'

/** What a server answered. */
interface Fetched {
  readonly status: number
  readonly bytes: Buffer
}

/** The program of a thread that asks, and wakes the one that waits. */
const program = `
const { workerData } = require('node:worker_threads')
const { url, headers, patience, flag, port } = workerData
const answer = news => {
  port.postMessage(news)
  Atomics.store(flag, 0, 1)
  Atomics.notify(flag, 0)
}
fetch(url, { headers, signal: AbortSignal.timeout(patience) }).then(
  async response => answer({ status: response.status, bytes: new Uint8Array(await response.arrayBuffer()) }),
  error => answer({ problem: error.cause ? error.cause.message : error.message }),
)
`

/** Asks a server while this thread stands still. */
export function fetchNow(
  url: string,
  headers: Readonly<Record<string, string>>,
  patience: number,
): Fetched {
  const flag = new Int32Array(new SharedArrayBuffer(4))
  const { port1, port2: port } = new MessageChannel()
  const workerData = { url, headers, patience, flag, port }
  const worker = new Worker(program, { eval: true, workerData, transferList: [port], env: {} })
  worker.unref()
  Atomics.wait(flag, 0, 0, patience + 1000)
  const { message } = receiveMessageOnPort(port1) ?? { message: { problem: 'no answer came' } }
  port1.close()
  const { status, bytes, problem } = message as Fetched & { readonly problem?: string }
  if (problem !== undefined)
    throw new Error(`${new URL(url).host} could not be reached: ${problem}`)
  return { status, bytes: Buffer.from(bytes) }
}
