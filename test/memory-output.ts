import type { ExportGroup, Format, FormatOptions, Output } from '../src/run/sinks/format.ts'
import { type Lost, makeLossReport } from '../src/run/sinks/lost.ts'

/** What a format wrote in a test. */
export interface Written {
  readonly bytes: Buffer
  readonly text: string
  /** One parsed value per line, where the format has lines. */
  readonly lines: readonly Record<string, unknown>[]
  readonly rows: number
  readonly lost: readonly Lost[]
}

/** Writes groups into memory. */
export async function writeTo(
  format: Format,
  groups: readonly ExportGroup[],
  options: Partial<FormatOptions> = {},
): Promise<Written> {
  const chunks: Buffer[] = []
  const output: Output = { write: chunk => void chunks.push(Buffer.from(chunk)) }
  const lost = makeLossReport()
  const defaults = {
    run: 'test',
    weighting: 'uniform',
    form: format.training?.form ?? 'once',
    loss: 'ppo',
    volatile: false,
  } as const
  const writer = format.open(output, { ...defaults, lost, ...options })
  let rows = 0
  for (const group of groups) rows += await writer.write(group)
  await writer.end()
  const bytes = Buffer.concat(chunks)
  const text = bytes.toString()
  return {
    bytes,
    text,
    rows,
    lost: lost.entries(),
    get lines() {
      return text
        .split('\n')
        .filter(line => line !== '')
        .map(line => JSON.parse(line) as Record<string, unknown>)
    },
  }
}
