import type { Readable } from 'node:stream'
import type { Exited, Inside, Starting } from '../inside/inside.ts'

/** What a process inside printed and how it ended. */
export interface Run extends Exited {
  readonly output: string
  readonly complaints: string
}

/** Runs a process inside to its end. */
export async function runToEnd(
  inside: Inside,
  starting: Starting,
  { input, most }: { readonly input?: string | undefined; readonly most: number },
): Promise<Run> {
  const process = inside.start(starting)
  if (input !== undefined) process.write(input)
  process.finish()
  const [output, complaints] = [process.output, process.complaints].map(each => tail(each, most))
  const { code, problem } = await process.exited
  return { code, output: output!.text(), complaints: `${complaints!.text()}${problem ?? ''}` }
}

/** Keeps the end of a stream, so that a flood fills no memory. */
export function tail(stream: Readable, most: number) {
  let kept: Buffer[] = []
  let size = 0
  let cut = 0
  const shorten = (): void => {
    const all = Buffer.concat(kept)
    const part = all.subarray(Math.max(0, all.length - most))
    cut += all.length - part.length
    kept = [part]
    size = part.length
  }
  stream.on('data', (chunk: Buffer) => {
    kept.push(chunk)
    size += chunk.length
    if (size > 2 * most) shorten()
  })
  return {
    text(): string {
      shorten()
      return Buffer.concat(kept).toString()
    },
    isCut: (): boolean => {
      shorten()
      return cut > 0
    },
  }
}
