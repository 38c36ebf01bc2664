import { readFile } from 'node:fs/promises'
import { z } from 'zod'

/** What a million tokens of the model that plays the user cost: those it reads, then those it says. */
export const priceOption = z
  .string()
  .regex(/^\d+(\.\d+)?\/\d+(\.\d+)?$/, 'write PROMPT/SAMPLED per million tokens, such as 2.5/10')
  .transform(text => {
    const [prompt, sampled] = text.split('/').map(Number) as [number, number]
    return { prompt, sampled }
  })
  .optional()

/** The splits of a benchmark's tasks, with the one that is chosen first. */
export function splitsFrom(
  benchmark: string,
  known: readonly [string, ...string[]],
  first: string | undefined,
): readonly [string, ...string[]] {
  if (first === undefined) return known
  if (!known.includes(first)) {
    throw new Error(`${benchmark} has no split "${first}". Known: ${known.join(', ')}.`)
  }
  return [first, ...known.filter(name => name !== first)]
}

/** The lines of a scripted user. */
export async function readScript(
  path: string | undefined,
): Promise<readonly [string, ...string[]]> {
  if (path === undefined) throw new Error('A scripted user needs its lines: script=FILE.')
  const lines = (await readFile(path, 'utf8')).split('\n').filter(line => line !== '')
  const [first, ...rest] = lines
  if (first === undefined) throw new Error(`${path} has no line for the user to say.`)
  return [first, ...rest]
}
