import { readFields, readId } from './fields.ts'

/** The tokens of a model, without those that were added to it. */
export interface Vocabulary {
  /** How many tokens there are; the first free id of an added token. */
  readonly count: number
  /** One more than the largest id. */
  readonly size: number
  idOf(token: string): number | undefined
  tokenOf(id: number): string | undefined
  /** Whether no two tokens have the same id. */
  isOneToOne(): boolean
}

/** Indexes a `{ token: id }` object both ways; the way from id to token is built when first used. */
export function openVocabulary(value: unknown): Vocabulary {
  const ids = new Map<string, number>()
  const vocab = readFields(value, 'model.vocab')
  let size = 0
  for (const token of Object.keys(vocab)) {
    const id = vocab[token]
    if (!isSmallId(id)) readId(id, `id of ${JSON.stringify(token)} in model.vocab`)
    ids.set(token, id as number)
    if ((id as number) >= size) size = (id as number) + 1
  }
  return indexVocabulary(ids, size)
}

/** The same for tokens whose id is their place in a list. */
export function listVocabulary(tokens: readonly string[]): Vocabulary {
  return indexVocabulary(new Map(tokens.map((token, id) => [token, id])), tokens.length)
}

function indexVocabulary(ids: ReadonlyMap<string, number>, size: number): Vocabulary {
  let tokens: readonly (string | undefined)[] | undefined
  return {
    count: ids.size,
    size,
    idOf: token => ids.get(token),
    tokenOf: id => {
      tokens ??= invert(ids, size)
      return tokens[id]
    },
    isOneToOne: () => areDifferent(ids.values(), size),
  }
}

function invert(ids: ReadonlyMap<string, number>, size: number): (string | undefined)[] {
  const tokens = new Array<string | undefined>(size).fill(undefined)
  for (const [token, id] of ids) tokens[id] = token
  return tokens
}

function areDifferent(ids: Iterable<number>, size: number): boolean {
  const taken = new Uint8Array(size)
  for (const id of ids) {
    if (taken[id] === 1) return false
    taken[id] = 1
  }
  return true
}

function isSmallId(id: unknown): boolean {
  return typeof id === 'number' && id >= 0 && id < 2 ** 21 && (id | 0) === id
}
