import type { IdBuffer } from './buffers.ts'
import type { Definition } from './definition.ts'
import { readFlag, readId, readList, readOptional, readText } from './fields.ts'
import { readPieceModel } from './pieces.ts'
import type { TextModel } from './pipeline.ts'
import { NOTHING, PrefixTree } from './prefix-tree.ts'
import { byteWriter, noToken } from './unknown.ts'
import { listVocabulary } from './vocabulary.ts'

/** How much worse an unknown character is than the worst token. */
const UNKNOWN_PENALTY = 10

/** Longer tokens would be looked for in time that grows with the square of a text. */
const longestToken = 1000

/** Tokens with scores: a piece becomes those whose scores have the largest sum. */
export function readUnigram(definition: Definition): TextModel {
  const { model } = definition
  const list = readList(model.vocab, 'model.vocab').map(readScored)
  const vocabulary = listVocabulary(list.map(([token]) => token))
  const scores = Float64Array.from(list, ([, score]) => score)
  const tree = new PrefixTree(list.map(([token], id) => [token, id]))
  const unknown = readOptional(model.unk_id, id => readId(id, 'model.unk_id'))
  const search: Search = {
    tree,
    scores,
    unknown: unknown ?? NOTHING,
    unknownScore: scores.reduce((least, score) => Math.min(least, score), 0) - UNKNOWN_PENALTY,
  }
  const writeBytes = byteWriter(vocabulary, readFlag(model.byte_fallback, 'model.byte_fallback'))
  const addPart = (part: string, ids: IdBuffer) => {
    const id = vocabulary.idOf(part)
    if (id !== undefined) ids.push(id)
    else if (!writeBytes(part, ids)) {
      if (unknown === undefined) throw noToken(part)
      ids.push(unknown)
    }
  }
  return readPieceModel(definition, {
    vocabulary,
    encode: (piece, ids) => {
      for (const part of partsOf(piece, search)) addPart(part, ids)
    },
  })
}

function readScored(value: unknown, id: number): readonly [string, number] {
  const where = `model.vocab[${id}]`
  const [token, score] = readList(value, where)
  const text = readText(token, where)
  if (typeof score !== 'number') throw new Error(`${where} should have a score, but has ${score}`)
  if (text.length > longestToken) {
    throw new Error(`${where} has ${text.length} characters; at most ${longestToken} are read`)
  }
  return [text, score]
}

interface Search {
  readonly tree: PrefixTree
  readonly scores: Float64Array
  readonly unknown: number
  readonly unknownScore: number
}

/** The best way to each place of a piece: its score, where its last token begins, and which that is. */
interface Ways {
  readonly best: Float64Array
  readonly from: Int32Array
  readonly token: Int32Array
}

/** The tokens of a piece as text; neighbouring unknown characters are one. */
function partsOf(piece: string, search: Search): readonly string[] {
  const { from, token } = waysOf(piece, search)
  const parts: string[] = []
  let unknownEnd = 0
  for (let end = piece.length; end > 0; ) {
    const start = from[end]!
    if (token[end] === search.unknown) unknownEnd = unknownEnd || end
    else parts.push(piece.slice(start, end))
    if (unknownEnd > 0 && (start === 0 || token[start] !== search.unknown)) {
      parts.push(piece.slice(start, unknownEnd))
      unknownEnd = 0
    }
    end = start
  }
  return parts.reverse()
}

function waysOf(piece: string, { tree, scores, unknown, unknownScore }: Search): Ways {
  const best = new Float64Array(piece.length + 1)
  const from = new Int32Array(piece.length + 1).fill(NOTHING)
  const token = new Int32Array(piece.length + 1)
  const reach = (end: number, start: number, id: number, score: number) => {
    if (from[end] !== NOTHING && score <= best[end]!) return
    best[end] = score
    from[end] = start
    token[end] = id
  }
  for (let start = 0; start < piece.length; ) {
    const after = start + (piece.codePointAt(start)! > 0xffff ? 2 : 1)
    let isKnown = false
    let node = 0
    for (let end = start; end < piece.length; ) {
      node = tree.next(node, piece.charCodeAt(end++))
      if (node === NOTHING) break
      const id = tree.valueAt(node)
      if (id === NOTHING) continue
      reach(end, start, id, scores[id]! + best[start]!)
      isKnown ||= end === after
    }
    if (!isKnown) reach(after, start, unknown, unknownScore + best[start]!)
    start = after
  }
  return { best, from, token }
}
