import { random, seedOf } from '../../base/math/random.ts'

/** A part of a set, with its share of the subjects. */
export interface Split {
  readonly name: string
  readonly share: number
}

/** Reads `train=0.9,held-out=0.1`; the shares must add up to 1. `none` is one part without a name. */
export function readSplits(text: string): readonly Split[] {
  if (text === 'none') return [{ name: '', share: 1 }]
  const splits = text.split(',').map(item => {
    const [name = '', share = ''] = item.split('=').map(part => part.trim())
    if (!/^[\w-]+$/.test(name) || !(Number(share) > 0)) {
      throw new Error(`"${item}" in "${text}" is not name=share, such as train=0.9`)
    }
    return { name, share: Number(share) }
  })
  const total = splits.reduce((sum, { share }) => sum + share, 0)
  if (Math.abs(total - 1) > 1e-6)
    throw new Error(`the shares of "${text}" add up to ${total}, not 1`)
  if (new Set(splits.map(({ name }) => name)).size < splits.length) {
    throw new Error(`"${text}" names a split twice`)
  }
  return splits
}

/** The split of a subject; it depends on the seed and the subject only. */
export function splitOf(subject: string, splits: readonly Split[], seed: number): string {
  const at = random(seedOf(seed, 'split', subject))()
  let end = 0
  for (const { name, share } of splits) {
    end += share
    if (at < end) return name
  }
  return splits.at(-1)!.name
}
