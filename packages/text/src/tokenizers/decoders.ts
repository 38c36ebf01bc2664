import { toBytes } from './byte-level/byte-alphabet.ts'
import {
  type Fields,
  readFields,
  readFlag,
  readList,
  readText,
  UnsupportedPartError,
} from './fields.ts'
import { literalPattern, replaceEach, toPattern } from './patterns.ts'

/** Rewrites the tokens of a text; what the last one of a chain gives is joined. */
export type Decoder = (tokens: readonly string[]) => readonly string[]

/** Builds the decoder of a tokenizer.json. Without one, words are joined with blanks between. */
export function makeDecoder(fields: Fields | undefined): Decoder {
  if (fields === undefined) return tokens => [tokens.join(' ')]
  switch (fields.type) {
    case 'Sequence':
      return sequence(readList(fields.decoders, 'decoders of a Sequence'))
    case 'ByteLevel':
      return tokens => [Buffer.concat(tokens.map(toBytes)).toString('utf8')]
    case 'ByteFallback':
      return joinBytes
    case 'Fuse':
      return tokens => [tokens.join('')]
    case 'Replace':
      return replace(fields)
    case 'Strip':
      return strip(fields)
    case 'Metaspace':
      return metaspace(fields)
    case 'WordPiece':
      return wordPiece(fields)
    case 'BPEDecoder':
      return endOfWords(readText(fields.suffix, 'suffix of a BPEDecoder'))
    default:
      throw new UnsupportedPartError(
        `The decoder ${JSON.stringify(fields.type)} is not known. Known: Sequence, ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, WordPiece, BPEDecoder.`,
      )
  }
}

const BYTE = /^<0x([0-9a-fA-F]{2})>$/

/** Whether a token stands for one byte, as `<0x0A>` does. */
export function isByteToken(token: string): boolean {
  return BYTE.test(token)
}

function sequence(steps: readonly unknown[]): Decoder {
  const decoders = steps.map(step => makeDecoder(readFields(step, 'a decoder of a Sequence')))
  return tokens => decoders.reduce((rest, decoder) => decoder(rest), tokens)
}

/** A run of bytes is text if all of it is UTF-8; else each of its bytes is U+FFFD. */
function joinBytes(tokens: readonly string[]): readonly string[] {
  const joined: string[] = []
  let bytes: number[] = []
  const close = () => {
    if (bytes.length > 0) for (const text of textOf(bytes)) joined.push(text)
    bytes = []
  }
  for (const token of tokens) {
    const byte = BYTE.exec(token)?.[1]
    if (byte !== undefined) bytes.push(Number.parseInt(byte, 16))
    else {
      close()
      joined.push(token)
    }
  }
  close()
  return joined
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function textOf(bytes: readonly number[]): readonly string[] {
  try {
    return [strict.decode(Uint8Array.from(bytes))]
  } catch {
    return bytes.map(() => '\ufffd')
  }
}

function replace(fields: Fields): Decoder {
  const pattern = readFields(fields.pattern, 'pattern of a Replace')
  const content = readText(fields.content, 'content of a Replace')
  const expression =
    pattern.String === undefined
      ? toPattern(readText(pattern.Regex, 'Regex of a Replace'))
      : literalPattern(readText(pattern.String, 'String of a Replace'))
  return tokens => tokens.map(token => replaceEach(token, expression, () => content))
}

/** Removes up to so many of one character from both ends of each token. */
function strip(fields: Fields): Decoder {
  const content = readText(fields.content, 'content of a Strip')
  const most = (name: 'start' | 'stop') =>
    Number.isInteger(fields[name]) ? Number(fields[name]) : 0
  const [left, right] = [most('start'), most('stop')]
  return tokens =>
    tokens.map(token => {
      const characters = [...token]
      let start = 0
      while (start < left && characters[start] === content) start++
      let end = characters.length
      const least = Math.max(start, end - right)
      while (end > least && characters[end - 1] === content) end--
      return characters.slice(start, end).join('')
    })
}

/** The replacement character is a blank, but in the first token nothing. */
function metaspace(fields: Fields): Decoder {
  const replacement = readText(fields.replacement, 'replacement of a Metaspace')
  const isPrefixed = fields.prepend_scheme !== 'never' && fields.add_prefix_space !== false
  return tokens =>
    tokens.map((token, index) =>
      token.replaceAll(replacement, index === 0 && isPrefixed ? '' : ' '),
    )
}

/** What ends a word is a blank, but at the end of the text nothing. */
function endOfWords(suffix: string): Decoder {
  return tokens =>
    tokens.map((token, index) => token.replaceAll(suffix, index === tokens.length - 1 ? '' : ' '))
}

const CLEANED: readonly (readonly [string, string])[] = [
  [' .', '.'],
  [' ?', '?'],
  [' !', '!'],
  [' ,', ','],
  [" ' ", "'"],
  [" n't", "n't"],
  [" 'm", "'m"],
  [' do not', " don't"],
  [" 's", "'s"],
  [" 've", "'ve"],
  [" 're", "'re"],
]

/** A blank before each word but the first, none before what continues a word. */
function wordPiece(fields: Fields): Decoder {
  const prefix = readText(fields.prefix, 'prefix of a WordPiece decoder')
  const isCleaned = readFlag(fields.cleanup, 'cleanup of a WordPiece decoder')
  const clean = (token: string) =>
    CLEANED.reduce((text, [from, to]) => text.replaceAll(from, to), token)
  return tokens =>
    tokens.map((token, index) => {
      const isContinued = token.startsWith(prefix)
      const word = index === 0 ? token : isContinued ? token.slice(prefix.length) : ` ${token}`
      return isCleaned ? clean(word) : word
    })
}
