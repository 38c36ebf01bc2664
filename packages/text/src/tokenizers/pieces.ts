import { Cuts, type IdBuffer, toUnits } from './buffers.ts'
import { fromBytes } from './byte-level/byte-alphabet.ts'
import { isWhiteSpace } from './controls.ts'
import type { Definition } from './definition.ts'
import { type Fields, readFlag, readText } from './fields.ts'
import { readNormalizer } from './normalizers/normalizers.ts'
import { toLiteral } from './patterns.ts'
import type { PlainEncoder, TextModel } from './pipeline.ts'
import { flatten, readPreTokenizer } from './splitters.ts'
import { readDecoding } from './token-decoding.ts'
import type { ControlToken } from './tokenizer.ts'
import type { Vocabulary } from './vocabulary.ts'

const utf8 = new TextEncoder()

/** A model that reads pieces of text, character by character. */
export interface PieceModel {
  readonly vocabulary: Vocabulary
  /** Adds the ids of a piece, which is never empty. */
  encode(piece: string, ids: IdBuffer): void
}

/** A piece of a text, and whether it is the text's very beginning. */
interface Piece {
  readonly text: string
  readonly isFirst: boolean
}

type Step = (piece: Piece) => readonly Piece[]

/** Puts a model that reads characters together with what comes before and behind it. */
export function readPieceModel(definition: Definition, model: PieceModel): TextModel {
  const steps = makeSteps(definition.preTokenizer)
  return {
    vocabulary: model.vocabulary,
    normalize: readNormalizer(definition.normalizer),
    openEncoder: (controls, ids) => makeEncoder(model, { steps, controls, ids }),
    openDecoding: tokenOf => readDecoding(definition.decoder, tokenOf),
  }
}

interface Encoding {
  readonly steps: readonly Step[]
  readonly controls: readonly ControlToken[]
  readonly ids: IdBuffer
}

function makeEncoder(model: PieceModel, { steps, controls, ids }: Encoding): PlainEncoder {
  const telling = controls.filter(control => !isWhiteSpace(control))
  const forbidden = new Map(telling.map(({ id, content }) => [id, content]))
  const inside = insideOf([...forbidden.values()])
  const encodePiece = (text: string) => {
    const start = ids.length
    model.encode(text, ids)
    const made = new Set<string>()
    for (let at = start; at < ids.length; at++) {
      const content = forbidden.get(ids.ids[at]!)
      if (content !== undefined) made.add(content)
    }
    // The unknown token is a control token too: made if the text does not spell it, it is no harm.
    if (![...made].some(content => text.includes(content))) return
    ids.length = start
    for (const part of text.split(inside)) model.encode(part, ids)
  }
  return (text, isFirst) => {
    const pieces = steps.reduce<readonly Piece[]>(
      (all, step) => all.flatMap(step),
      [{ text, isFirst }],
    )
    for (const piece of pieces) if (piece.text !== '') encodePiece(piece.text)
  }
}

/**
 * The places behind the first character of each control string: data that spells one is cut there,
 * so that the model cannot make the token. A string of one character has no inside; if it is a
 * token, there is no other way to write that character.
 */
function insideOf(contents: readonly string[]): RegExp {
  const places = contents.flatMap(content => {
    const [first = '', ...rest] = [...content]
    return rest.length === 0
      ? []
      : [`(?<=${toLiteral(first).source})(?=${toLiteral(rest.join('')).source})`]
  })
  return new RegExp(places.length === 0 ? '(?!)' : places.join('|'), 'v')
}

function makeSteps(fields: Fields | undefined): readonly Step[] {
  return (fields === undefined ? [] : flatten(fields)).map(step =>
    step.type === 'Metaspace' ? metaspace(step) : splitting(step),
  )
}

/** Cuts pieces; behind a ByteLevel step they are written in the alphabet of bytes. */
function splitting(fields: Fields): Step {
  const { split, isByteLevel, prefixesBlank } = readPreTokenizer(fields)
  const all = new Cuts()
  return ({ text: given, isFirst }) => {
    const text = prefixesBlank && !given.startsWith(' ') ? ` ${given}` : given
    all.clear().add(0, text.length)
    const pieces = split({ text, units: toUnits(text) }, all)
    return Array.from({ length: pieces.count }, (_, index) => {
      const start = pieces.start(index)
      const piece = text.slice(start, pieces.end(index))
      return {
        text: isByteLevel ? fromBytes(utf8.encode(piece)) : piece,
        isFirst: isFirst && start === 0,
      }
    })
  }
}

/** Blanks become a visible character, one of which begins every word, or the text alone. */
function metaspace(fields: Fields): Step {
  const mark = readText(fields.replacement, 'replacement of a Metaspace')
  const scheme = schemeOf(fields)
  const splits = fields.split === undefined || readFlag(fields.split, 'split of a Metaspace')
  return ({ text, isFirst }) => {
    const marked = text.replaceAll(' ', mark)
    const isPrefixed = scheme === 'always' || (scheme === 'first' && isFirst)
    const whole = isPrefixed && !marked.startsWith(mark) ? mark + marked : marked
    const words = splits ? beforeEach(whole, mark) : [whole]
    return words.map((word, index) => ({ text: word, isFirst: isFirst && index === 0 }))
  }
}

/** Older files say only whether there is a prefix. */
function schemeOf(fields: Fields): string {
  if (fields.prepend_scheme !== undefined) {
    return readText(fields.prepend_scheme, 'prepend_scheme of a Metaspace')
  }
  return fields.add_prefix_space === false ? 'never' : 'always'
}

/** A text cut before each occurrence of a mark. */
function beforeEach(text: string, mark: string): readonly string[] {
  const [head = '', ...tails] = text.split(mark)
  const words = tails.map(tail => mark + tail)
  return head === '' ? words : [head, ...words]
}
