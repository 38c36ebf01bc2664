import { IdBuffer } from './buffers.ts'
import { type ControlMatcher, makeControlMatcher } from './control-matcher.ts'
import type { Decoding } from './decoding.ts'
import type { Marked, Normalizer } from './normalizers/rewriting.ts'
import type { ControlToken, EncodeOptions, Tokenizer } from './tokenizer.ts'
import type { Vocabulary } from './vocabulary.ts'

/** The model-specific part of a tokenizer; control tokens work the same for all models. */
export interface TextModel {
  readonly vocabulary: Vocabulary
  readonly normalize: Normalizer | undefined
  /** An encoder of text that is data: its ids are added to `ids` and are never control tokens. */
  openEncoder(controls: readonly ControlToken[], ids: IdBuffer): PlainEncoder
  openDecoding(tokenOf: (id: number) => string | undefined): Decoding
}

/**
 * Encodes normalized text between two control tokens, which is never empty; `isFirst` where nothing
 * stands before it.
 */
export type PlainEncoder = (text: string, isFirst: boolean) => void

/** Puts a model and its control tokens together. */
export function assemble(model: TextModel, controls: readonly ControlToken[]): Tokenizer {
  const { vocabulary } = model
  const byId = new Map(controls.map(control => [control.id, control]))
  const ids = new Map(controls.map(control => [control.content, control.id]))
  const spellings = new Map(controls.map(control => [control.id, spellingOf(control, model)]))
  const decoding = model.openDecoding(id => spellings.get(id) ?? vocabulary.tokenOf(id))
  const skipped = new Set(skippedIds(controls, spellings))
  const isSkipped = (skipSpecial: boolean | undefined) =>
    skipSpecial === true ? (id: number) => skipped.has(id) : () => false
  const { bytesOf } = decoding
  return {
    size: Math.max(vocabulary.size, 1 + (controls.at(-1)?.id ?? -1)),
    controls,
    ...makeEncoding(model, controls),
    decode: (given, options) => decoding.decode(given, isSkipped(options?.skipSpecial)),
    makeDecoder: options => decoding.open(isSkipped(options?.skipSpecial)),
    idOf: token => ids.get(token) ?? vocabulary.idOf(token),
    tokenOf: id => byId.get(id)?.content ?? vocabulary.tokenOf(id),
    isControl: id => byId.get(id)?.special === true,
    ...(bytesOf === undefined ? {} : { bytesOf }),
  }
}

function makeEncoding(
  model: TextModel,
  controls: readonly ControlToken[],
): Pick<Tokenizer, 'encode' | 'encodeParts' | 'encodeOrdinary'> {
  const ids = new IdBuffer()
  const encodePlain = model.openEncoder(controls, ids)
  const normalize = model.normalize ?? (input => input)
  const matchGiven = matcherOf(model, controls, false)
  const matchNormalized = matcherOf(model, controls, true)

  // Only for normalized controls must the marks go through the normalizer, which costs time.
  const needsMarks = controls.some(control => control.normalized)

  const encodeBetween = (input: Marked, isFirst: boolean) => {
    const normalized = normalize(input)
    for (const { start, end, control } of matchNormalized(normalized)) {
      if (control !== undefined) ids.push(control.id)
      else encodePlain(normalized.text.slice(start, end), isFirst && start === 0)
    }
  }
  const encodeAll = (input: Marked, isFirst: boolean) => {
    for (const { start, end, control } of matchGiven(input)) {
      if (control !== undefined) ids.push(control.id)
      else {
        const foreign = needsMarks ? input.foreign?.subarray(start, end) : undefined
        encodeBetween({ text: input.text.slice(start, end), foreign }, isFirst && start === 0)
      }
    }
  }
  return {
    encode: (text, options = {}) =>
      ids.gather(() =>
        encodeAll({ text: wellFormed(text), foreign: toMarks(text, options) }, true),
      ),
    encodeParts: parts =>
      ids.gather(() => {
        parts.forEach((part, index) => {
          if (part instanceof Int32Array) ids.add(part)
          else
            encodeAll(
              { text: wellFormed(part.text), foreign: toMarks(part.text, part) },
              index === 0,
            )
        })
      }),
    encodeOrdinary: text =>
      ids.gather(() => {
        const normalized = normalize({ text: wellFormed(text) }).text
        if (normalized !== '') encodePlain(normalized, true)
      }),
  }
}

function matcherOf(
  model: TextModel,
  controls: readonly ControlToken[],
  normalized: boolean,
): ControlMatcher {
  const wanted = controls.filter(control => control.normalized === normalized)
  return makeControlMatcher(wanted.map(control => [spellingOf(control, model), control]))
}

/** How a control token is spelled in the text that is searched, and in decoded text. */
function spellingOf({ content, normalized }: ControlToken, { normalize }: TextModel): string {
  return normalized && normalize !== undefined ? normalize({ text: content }).text : content
}

/** The reference skips by spelling, so a special token that normalizing changes is not skipped. */
function skippedIds(
  controls: readonly ControlToken[],
  spellings: ReadonlyMap<number, string>,
): readonly number[] {
  const special = new Set(controls.flatMap(each => (each.special ? [each.content] : [])))
  return controls.flatMap(({ id }) => (special.has(spellings.get(id)!) ? [id] : []))
}

/** One mark for each UTF-16 unit; undefined if nothing is foreign. */
function toMarks(text: string, { foreign = [] }: EncodeOptions): Uint8Array | undefined {
  if (foreign.length === 0) return undefined
  const marks = new Uint8Array(text.length)
  for (const [start, end] of foreign) {
    if (!(Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end)) {
      throw new RangeError(`A foreign range should be [start, end], but is [${start}, ${end}]`)
    }
    if (end > text.length) {
      throw new RangeError(
        `The foreign range [${start}, ${end}] ends after ${text.length} units, the length of the text`,
      )
    }
    marks.fill(1, start, end)
  }
  return marks
}

/** A surrogate without its other half, which UTF-8 cannot write, becomes U+FFFD. */
function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed()
}
