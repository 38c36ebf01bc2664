import type { MarkedText, Tokenizer } from '../../tokenizers/tokenizer.ts'
import type { EncodePart } from './hole-encoder.ts'

/** How many encoded texts are kept. */
const mostKept = 64
/** Shorter ones are encoded as fast as they are found; of longer ones, those that are kept would take megabytes. */
const [shortestKept, longestKept] = [128, 2 ** 14]
/** How many characters from either end of a text are looked at to tell most texts apart. */
const looks = 16

/** Mixes a text into a number that equal texts share and others hardly ever do. */
export function mixText(number: number, text: string): number {
  const { length } = text
  let mixed = Math.imul(number ^ length, 0x9e3779b1)
  for (let look = 0; look < looks; look++) {
    mixed = Math.imul(mixed ^ text.charCodeAt(look), 0x9e3779b1)
    mixed = Math.imul(mixed ^ text.charCodeAt(length - 1 - look * look), 0x9e3779b1)
  }
  return mixed
}

interface Kept extends MarkedText {
  readonly isFirst: boolean
  readonly ids: Int32Array
}

/**
 * Encodes texts, and keeps what the last ones were encoded as: the members of a group often make the same call, and
 * see the same answer.
 */
export function makeRecentIds(tokenizer: Pick<Tokenizer, 'encodeParts'>): EncodePart {
  const fingerprints = new Int32Array(mostKept)
  const kept: Kept[] = []
  let next = 0

  function find({ text, foreign }: MarkedText, isFirst: boolean, fingerprint: number) {
    for (let place = 0; place < kept.length; place++) {
      if (fingerprints[place] !== fingerprint) continue
      const known = kept[place]!
      const isSame =
        known.text === text && known.isFirst === isFirst && isSameRanges(known.foreign, foreign)
      if (isSame) return known.ids
    }
    return undefined
  }

  return (part, isFirst) => {
    const { text, foreign } = part
    if (text.length < shortestKept || text.length > longestKept) return part
    const fingerprint = mixText(0, text)
    const known = find(part, isFirst, fingerprint)
    if (known) return known
    const ids = tokenizer.encodeParts(isFirst ? [part] : [nothing, part])
    // The oldest one makes room.
    fingerprints[next] = fingerprint
    kept[next] = { text, foreign, isFirst, ids }
    next = (next + 1) % mostKept
    return ids
  }
}

const nothing = new Int32Array(0)

function isSameRanges(one: MarkedText['foreign'], other: MarkedText['foreign']): boolean {
  return (
    one.length === other.length &&
    one.every(([start, end], index) => start === other[index]![0] && end === other[index]![1])
  )
}
