import { open, rm } from 'node:fs/promises'
import { importRun } from '../exchange/import.ts'
import type { FormatReader } from '../sinks/reader.ts'
import { readerNamed, readers } from '../sinks/readers/registry.ts'

/** Thrown for a file that no reader can read. */
export class UnknownFormatError extends Error {
  override name = 'UnknownFormatError'
  readonly statusCode = 422
}

/**
 * Makes a run of a foreign file. If its format is not named, the readers that fit its first bytes are
 * tried, the most specific first; the first that reads the whole file is taken.
 */
export async function importForeign(
  file: string,
  {
    out,
    title,
    format,
  }: { readonly out: string; readonly title: string; readonly format?: string },
): Promise<{ folder: string; format: string; trajectories: number }> {
  const candidates = format === undefined ? readersFor(await kindOf(file)) : [readerNamed(format)]
  const refusals: string[] = []
  for (const { name } of candidates) {
    try {
      const { trajectories } = await importRun(file, { from: name, out, keepsMessages: true })
      if (trajectories > 0) return { folder: out, format: name, trajectories }
    } catch (error) {
      refusals.push(`${name}: ${(error as Error).message.replaceAll(file, title)}`)
    }
    await rm(out, { recursive: true, force: true })
  }
  throw new UnknownFormatError(
    `${title} fits none of the formats that can be read. ${refusals.slice(0, 16).join(' · ')}`,
  )
}

type Kind = FormatReader['kind']

/** What the first bytes of a file say about it. */
async function kindOf(file: string): Promise<Kind> {
  const handle = await open(file, 'r')
  try {
    const start = Buffer.alloc(256)
    const { bytesRead } = await handle.read(start, 0, start.length, 0)
    const text = start.toString('latin1', 0, bytesRead)
    if (text.startsWith('PAR1')) return 'table'
    return text
      .replace(/^\xef\xbb\xbf/, '')
      .trimStart()
      .startsWith('[')
      ? 'array'
      : 'lines'
  } finally {
    await handle.close()
  }
}

function readersFor(kind: Kind): readonly FormatReader[] {
  const fitting = readers.filter(reader => reader.kind === kind)
  // Message-only formats accept almost anything, so they are tried last.
  return fitting.toSorted(
    (a, b) => Number(a.hasOnlyMessages ?? false) - Number(b.hasOnlyMessages ?? false),
  )
}
