import { readFields, readId } from './fields.ts'

/** Ids from here on are refused by `readId`. */
const FIRST_TOO_LARGE = 2 ** 21

/** The tokens of a model, without those that were added to it. */
export interface Vocabulary {
  /** How many tokens there are; the first free id of an added token. */
  readonly count: number
  /** One more than the largest id. */
  readonly size: number
  /** Whether no two tokens have the same id. */
  readonly isOneToOne: boolean
  idOf(token: string): number | undefined
  tokenOf(id: number): string | undefined
  entries(): Iterable<readonly [string, number]>
}

/** Indexes a `{ token: id }` object both ways; the way from id to token is built when first used. */
export function readVocabulary(value: unknown): Vocabulary {
  const ids = new Map<string, number>()
  const vocab = readFields(value, 'model.vocab')
  const usedIds = new Uint8Array(FIRST_TOO_LARGE)
  let isOneToOne = true
  let size = 0
  for (const token of Object.keys(vocab)) {
    const id = vocab[token] as number
    if (!isSmallId(id)) readId(id, `id of ${JSON.stringify(token)} in model.vocab`)
    ids.set(token, id)
    if (usedIds[id] === 1) isOneToOne = false
    usedIds[id] = 1
    if (id >= size) size = id + 1
  }
  return indexVocabulary(ids, { size, isOneToOne })
}

/** A vocabulary of tokens whose id is their place in a list. */
export function listVocabulary(tokens: readonly string[]): Vocabulary {
  const ids = new Map(tokens.map((token, id) => [token, id]))
  return indexVocabulary(ids, { size: tokens.length, isOneToOne: true })
}

function indexVocabulary(
  ids: ReadonlyMap<string, number>,
  { size, isOneToOne }: Pick<Vocabulary, 'size' | 'isOneToOne'>,
): Vocabulary {
  let tokens: readonly (string | undefined)[] | undefined
  return {
    count: ids.size,
    size,
    isOneToOne,
    idOf: token => ids.get(token),
    tokenOf: id => {
      tokens ??= invert(ids, size)
      return tokens[id]
    },
    entries: () => ids.entries(),
  }
}

function invert(ids: ReadonlyMap<string, number>, size: number): (string | undefined)[] {
  const tokens = new Array<string | undefined>(size).fill(undefined)
  for (const [token, id] of ids) tokens[id] = token
  return tokens
}

function isSmallId(id: unknown): boolean {
  return typeof id === 'number' && id >= 0 && id < FIRST_TOO_LARGE && (id | 0) === id
}
