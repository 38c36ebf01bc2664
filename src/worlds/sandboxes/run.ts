import type { ChildProcess } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import type { Sandbox } from './sandbox.ts'

/** How a command is run and when it is ended. */
export interface RunOptions {
  /** What it reads. @default '' */
  readonly input?: string | Uint8Array
  /** Seconds until it is ended. */
  readonly seconds: number
  /** Bytes that are kept of its output and of its complaints, each. */
  readonly outputBytes: number
  /** Bytes that are kept of its complaints, if that is another number. @default outputBytes */
  readonly complaintBytes?: number
  readonly signal?: AbortSignal
}

/** What became of a command. */
export interface Finished {
  readonly end: 'exited' | 'out-of-time' | 'stopped'
  /** Its exit code; 128 and more if a signal ended it. */
  readonly code: number
  readonly output: string
  readonly complaints: string
  /** Bytes that it wrote and that were not kept. */
  readonly cut: number
}

/** A command that somebody talks to while it runs. */
export interface StartedCommand {
  /** What it reads; what is written after its end is dropped. */
  readonly input: Writable
  /** What it prints, as it comes. */
  readonly output: Readable
  /** Resolves when it has ended and all that it left running with it; its output is in `output` alone. */
  readonly finished: Promise<Finished>
}

/** Runs a command inside to its end, or until its time is over. */
export function runInside(
  sandbox: Sandbox,
  command: readonly string[],
  { input = '', ...options }: RunOptions,
): Promise<Finished> {
  const child = sandbox.spawn(command)
  child.stdin!.on('error', () => undefined)
  child.stdin!.end(input)
  return waitFor(child, sandbox, { ...options, output: gather(child.stdout!, options.outputBytes) })
}

/** Starts a command inside that is talked to until it ends, or its time is over. */
export function startInside(
  sandbox: Sandbox,
  command: readonly string[],
  options: Omit<RunOptions, 'input'>,
): StartedCommand {
  const child = sandbox.spawn(command)
  child.stdin!.on('error', () => undefined)
  const finished = waitFor(child, sandbox, { ...options, output: nothing })
  // Whoever reads the output may see its end first.
  finished.catch(() => undefined)
  return { input: child.stdin!, output: child.stdout!, finished }
}

const nothing: Gathered = { text: () => '', cut: () => 0 }

async function waitFor(
  child: ChildProcess,
  sandbox: Sandbox,
  {
    seconds,
    outputBytes,
    complaintBytes = outputBytes,
    signal,
    output,
  }: Omit<RunOptions, 'input'> & { readonly output: Gathered },
): Promise<Finished> {
  const complaints = gather(child.stderr!, complaintBytes)
  let end: Finished['end'] = 'exited'
  const stop = (why: Finished['end']): void => {
    if (end !== 'exited') return
    end = why
    endGroup(child)
    if (sandbox.walls.processes) return
    // Something may have left the group, and holds the pipes open.
    child.stdout!.destroy()
    child.stderr!.destroy()
  }
  const delay = seconds * 1000
  const timer = delay <= longestDelay ? setTimeout(() => stop('out-of-time'), delay) : undefined
  const onAbort = (): void => stop('stopped')
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted) onAbort()
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      if (!sandbox.walls.processes) child.once('exit', () => endGroup(child))
      child.once('close', (status, name) => resolve(status ?? (name === null ? 1 : 137)))
    })
    const cut = output.cut() + complaints.cut()
    return { end, code, output: output.text(), complaints: complaints.text(), cut }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

// A timer's delay is a 32-bit number of milliseconds.
const longestDelay = 2 ** 31 - 1

/** Ends a process with all that it started; what is left of its group, if it has ended already. */
function endGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
}

/** What is kept of a stream, and how much of it is not. */
interface Gathered {
  text(): string
  cut(): number
}

/** Keeps the beginning of a stream and counts the rest, so that a flood fills no memory. */
function gather(stream: NodeJS.ReadableStream, most: number): Gathered {
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
