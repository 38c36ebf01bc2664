import { type AddedToken, readAddedToken } from './definition.ts'
import { readFields, readList, readOptional, readText } from './fields.ts'
import type { ControlToken } from './tokenizer.ts'
import type { Vocabulary } from './vocabulary.ts'

export interface ControlSources {
  /** A parsed tokenizer_config.json. */
  readonly config: unknown
  /** Strings that become special tokens. */
  readonly extra: readonly string[]
}

/**
 * Whether a control token is nothing but white space, which some vocabularies list among theirs: text may
 * become it, because the model itself makes it of blanks.
 */
export function isWhiteSpace({ content }: Pick<ControlToken, 'content'>): boolean {
  return /^[\s▁]*$/.test(content)
}

/** The names that a config gives to special tokens, in the order in which they are added. */
export const tokenRoles = [
  'bos_token',
  'eos_token',
  'unk_token',
  'sep_token',
  'pad_token',
  'cls_token',
  'mask_token',
] as const

/**
 * All added tokens with their ids, by ascending id: those of tokenizer.json, then what the config
 * says, then the extra ones. An id is the vocabulary's for the string, else the next free one, as in
 * the reference; the id that a file writes beside a token is ignored.
 */
export function gatherControls(
  added: readonly AddedToken[],
  vocabulary: Vocabulary,
  { config, extra }: ControlSources,
): readonly ControlToken[] {
  const controls = new Map<string, ControlToken>()
  const addAll = (tokens: readonly AddedToken[]) => {
    let free = vocabulary.count
    for (const { id } of controls.values()) free = Math.max(free, id + 1)
    for (const token of tokens) {
      if (token.content === '') continue
      const known = controls.get(token.content)
      const id = known?.id ?? vocabulary.idOf(token.content) ?? free++
      const special = token.special || known?.special === true
      controls.set(token.content, { ...token, id, special })
    }
  }
  const isNew = ({ content }: AddedToken) => !controls.has(content)
  const { listed, named } = readConfig(config)
  addAll(added)
  addAll([...listed, ...named.filter(isNew)])
  addAll(extra.map(special).filter(isNew))
  return [...controls.values()].sort((left, right) => left.id - right.id)
}

function special(content: string): AddedToken {
  const flags = { lstrip: false, rstrip: false, singleWord: false, normalized: false }
  return { id: undefined, content, special: true, ...flags }
}

interface ConfigTokens {
  /** Tokens with all their flags, which replace those of tokenizer.json. */
  readonly listed: readonly AddedToken[]
  /** Tokens that have a role; they count only if they are not tokens yet. */
  readonly named: readonly AddedToken[]
}

function readConfig(value: unknown): ConfigTokens {
  if (value === undefined || value === null) return { listed: [], named: [] }
  const config = readFields(value, 'tokenizer_config.json')
  const decoder = readOptional(config.added_tokens_decoder, found =>
    readFields(found, 'added_tokens_decoder'),
  )
  const roles = tokenRoles.flatMap(role => fromRole(config[role], role))
  const contents = new Set(roles.map(token => token.content))
  const listed = Object.entries(decoder ?? {})
    .sort(([left], [right]) => Number(left) - Number(right))
    .map(([id, token]) => readAddedToken(token, `added_tokens_decoder[${id}]`))
    .map(token => ({ ...token, special: token.special || contents.has(token.content) }))
  const more = ['additional_special_tokens', 'extra_special_tokens'] as const
  return { listed, named: [...roles, ...more.flatMap(name => fromList(config[name], name))] }
}

/** A special token is written as a string, or as an object with flags. */
function fromRole(value: unknown, where: string): readonly AddedToken[] {
  if (value === undefined || value === null) return []
  if (typeof value === 'string') return [special(value)]
  return [{ ...readAddedToken(value, where), special: true }]
}

/** A list of special tokens, or an object of them by name. */
function fromList(value: unknown, where: string): readonly AddedToken[] {
  if (value === undefined || value === null) return []
  const tokens = Array.isArray(value)
    ? readList(value, where)
    : Object.values(readFields(value, where))
  return tokens.flatMap(token =>
    fromRole(typeof token === 'object' ? token : readText(token, where), where),
  )
}
