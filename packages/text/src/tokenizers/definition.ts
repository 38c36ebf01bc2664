import {
  type Fields,
  readFields,
  readFlag,
  readId,
  readList,
  readOptional,
  readText,
} from './fields.ts'

/** A tokenizer.json with its outer shape checked; each part is read where it is built. */
export interface Definition {
  readonly modelType: string
  readonly model: Fields
  readonly normalizer: Fields | undefined
  readonly preTokenizer: Fields | undefined
  readonly decoder: Fields | undefined
  readonly addedTokens: readonly AddedToken[]
}

/** An added token as the file has it; the vocabulary may give it another id. */
export interface AddedToken {
  readonly id: number | undefined
  readonly content: string
  readonly special: boolean
  readonly lstrip: boolean
  readonly rstrip: boolean
  readonly singleWord: boolean
  readonly normalized: boolean
}

/** Reads a parsed tokenizer.json. */
export function readDefinition(value: unknown): Definition {
  const file = readFields(value, 'tokenizer.json')
  const model = readFields(file.model, 'model in tokenizer.json')
  const part = (name: string) =>
    readOptional(file[name], found => readFields(found, `${name} in tokenizer.json`))
  const added = readOptional(file.added_tokens, found => readList(found, 'added_tokens')) ?? []
  return {
    modelType: typeOfModel(model),
    model,
    normalizer: part('normalizer'),
    preTokenizer: part('pre_tokenizer'),
    decoder: part('decoder'),
    addedTokens: added.map((token, index) => readAddedToken(token, `added_tokens[${index}]`)),
  }
}

/** Reads one added token of tokenizer.json, or of the added_tokens_decoder of its config. */
export function readAddedToken(value: unknown, where: string): AddedToken {
  const fields = readFields(value, where)
  const flag = (name: string) => readFlag(fields[name], `${name} of ${where}`)
  return {
    id: readOptional(fields.id, id => readId(id, `id of ${where}`)),
    content: readText(fields.content, `content of ${where}`),
    special: flag('special'),
    lstrip: flag('lstrip'),
    rstrip: flag('rstrip'),
    singleWord: flag('single_word'),
    normalized: flag('normalized'),
  }
}

/** Older files do not name the model's type; it is recognised by its fields. */
function typeOfModel(model: Fields): string {
  if (model.type !== undefined && model.type !== null) return readText(model.type, 'model.type')
  if (model.merges !== undefined) return 'BPE'
  if (Array.isArray(model.vocab)) return 'Unigram'
  return model.max_input_chars_per_word === undefined ? 'WordLevel' : 'WordPiece'
}
