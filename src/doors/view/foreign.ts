import { open, rm } from 'node:fs/promises'
import { importRun } from '../../run/exchange/import.ts'
import type { FormatReader } from '../../run/sinks/reader.ts'
import { readerNamed, readers } from '../../run/sinks/readers/registry.ts'

/** Thrown for a file that no reader can read. */
class UnknownFormatError extends Error {
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
  const candidates = format === undefined ? readersFor(await kindOf(file)) : [readerOf(format)]
  const refusals = new Map<string, string[]>()
  for (const { name } of candidates) {
    try {
      const { trajectories } = await importRun(file, { from: name, out, keepsMessages: true })
      if (trajectories > 0) return { folder: out, format: name, trajectories }
    } catch (error) {
      const problem = (error as Error).message.replaceAll(file, title)
      refusals.set(problem, [...(refusals.get(problem) ?? []), name])
    }
    await rm(out, { recursive: true, force: true })
  }
  throw new UnknownFormatError(
    `${title} fits none of the formats that can be read: ${told(refusals)}. ${whatOpens()}`,
  )
}

function readerOf(format: string): FormatReader {
  try {
    return readerNamed(format)
  } catch (error) {
    throw new UnknownFormatError((error as Error).message, { cause: error })
  }
}

/** Each complaint once, with the formats that made it; without their names if all made the same. */
function told(refusals: ReadonlyMap<string, readonly string[]>): string {
  if (refusals.size === 0) return 'it holds no trajectories'
  if (refusals.size === 1) return [...refusals.keys()].join()
  return [...refusals].map(([problem, names]) => `${names.join(', ')}: ${problem}`).join(' · ')
}

/** Every kind of file that can be opened, with its formats. */
function whatOpens(): string {
  const kinds = Object.entries(kindsInWords).map(([kind, words]) => {
    const names = readers.filter(reader => reader.kind === kind).map(({ name }) => name)
    return `${words} (${names.join(', ')})`
  })
  return `What opens: the folder of a run, or a file with ${kinds.join('; ')}.`
}

type Kind = FormatReader['kind']

const kindsInWords: Readonly<Record<Kind, string>> = {
  lines: 'one JSON object per line',
  array: 'one JSON array',
  table: 'a Parquet table',
}

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
