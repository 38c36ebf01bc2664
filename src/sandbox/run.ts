import type { Sandbox } from './sandbox.ts'

/** How a command is run and when it is ended. */
export interface RunOptions {
  /** What it reads. @default '' */
  readonly input?: string | Uint8Array
  /** Seconds until it is ended. */
  readonly seconds: number
  /** Bytes that are kept of its output and of its complaints, each. */
  readonly outputBytes: number
  readonly signal?: AbortSignal
}

/** What became of a command. */
export interface Finished {
  readonly end: 'exited' | 'out-of-time' | 'stopped'
  /** Its exit code; 128 and more where a signal ended it. */
  readonly code: number
  readonly output: string
  readonly complaints: string
  /** Bytes that it wrote and that were not kept. */
  readonly cut: number
}

/** Runs a command inside to its end, or until its time is over. */
export async function runInside(
  sandbox: Sandbox,
  command: readonly string[],
  { input = '', seconds, outputBytes, signal }: RunOptions,
): Promise<Finished> {
  const child = sandbox.spawn(command)
  const output = gather(child.stdout!, outputBytes)
  const complaints = gather(child.stderr!, outputBytes)
  let end: Finished['end'] = 'exited'
  const stop = (why: Finished['end']): void => {
    if (end !== 'exited') return
    end = why
    child.kill('SIGKILL')
  }
  const timer = setTimeout(() => stop('out-of-time'), seconds * 1000)
  const onAbort = (): void => stop('stopped')
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted) onAbort()
  child.stdin!.on('error', () => undefined)
  child.stdin!.end(input)
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (status, name) => resolve(status ?? (name === null ? 1 : 137)))
    })
    const cut = output.cut() + complaints.cut()
    return { end, code, output: output.text(), complaints: complaints.text(), cut }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

/** Keeps the beginning of a stream and counts the rest, so that a flood fills no memory. */
function gather(stream: NodeJS.ReadableStream, most: number) {
  const chunks: Buffer[] = []
  let kept = 0
  let cut = 0
  stream.on('data', (chunk: Buffer) => {
    const part = chunk.subarray(0, most - kept)
    if (part.length > 0) chunks.push(part)
    kept += part.length
    cut += chunk.length - part.length
  })
  return { text: () => Buffer.concat(chunks).toString(), cut: () => cut }
}
