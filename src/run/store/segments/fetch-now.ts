import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'

/** What is asked of a server, and how it is waited for. */
interface Asking {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** In milliseconds. */
  readonly patience: number
  /** Bytes that the answer may have. */
  readonly most: number
}

/** What a server answered. */
interface Fetched {
  readonly status: number
  readonly bytes: Buffer
}

/** The program of a thread that asks, and wakes the one that waits. */
const program = `
const { workerData } = require('node:worker_threads')
const { url, headers, patience, most, flag, port } = workerData
const answer = news => {
  port.postMessage(news)
  Atomics.store(flag, 0, 1)
  Atomics.notify(flag, 0)
}
const ask = async () => {
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(patience), redirect: 'error' })
  const parts = []
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.length
    if (size > most) throw new Error('it has more than ' + most + ' bytes')
    parts.push(part)
  }
  return { status: response.status, bytes: Buffer.concat(parts) }
}
ask().then(answer, error => answer({ problem: error.cause ? error.cause.message : error.message }))
`

/** Asks a server while this thread stands still; it leads to no other one. */
export function fetchNow(asking: Asking): Fetched {
  const flag = new Int32Array(new SharedArrayBuffer(4))
  const { port1, port2: port } = new MessageChannel()
  const workerData = { ...asking, flag, port }
  const worker = new Worker(program, { eval: true, workerData, transferList: [port], env: {} })
  worker.unref()
  Atomics.wait(flag, 0, 0, asking.patience + 1000)
  const { message } = receiveMessageOnPort(port1) ?? { message: { problem: 'no answer came' } }
  port1.close()
  const { status, bytes, problem } = message as Fetched & { readonly problem?: string }
  if (problem !== undefined)
    throw new Error(`${new URL(asking.url).host} could not be reached: ${problem}`)
  return { status, bytes: Buffer.from(bytes) }
}
