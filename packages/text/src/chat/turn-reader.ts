import type { ToolDefinition } from '../message.ts'
import type { OutputPart, TextPiece } from '../parsers/parser.ts'
import type { TurnPiece, TurnReader } from '../renderer.ts'
import { makeParsers, type ReplyContext } from './reply.ts'

/** Opens readers of turns that are still being sampled. */
export function makeTurnReaders(
  context: ReplyContext,
): (tools: readonly ToolDefinition[]) => TurnReader {
  const { tokenizer, stopIds } = context
  const parserFor = makeParsers(context)
  const controls = new Map(tokenizer.controls.map(({ id, content }) => [id, content]))
  const ends = new Set(stopIds)
  return tools => {
    const parser = parserFor(tools).open()
    let decoder = tokenizer.makeDecoder()
    const piecesOf = (id: number): readonly TextPiece[] => {
      // A stop token is not part of the text; what it closes is read when the turn is whole.
      if (ends.has(id)) return []
      const control = controls.get(id)
      if (control === undefined) return plain(decoder.push(Int32Array.of(id)))
      const before = decoder.end()
      decoder = tokenizer.makeDecoder()
      return [...plain(before), { text: control, control: true }]
    }
    return {
      push: ids => parser.push([...ids].flatMap(piecesOf)).flatMap(toPiece),
    }
  }
}

function plain(text: string): readonly TextPiece[] {
  return text === '' ? [] : [{ text, control: false }]
}

/** Calls are given when the whole turn is read; a malformed one stays in the words. */
function toPiece(part: OutputPart): readonly TurnPiece[] {
  if (part.kind === 'reasoning') return [{ kind: 'reasoning', text: part.text }]
  if (part.kind === 'content') return [{ kind: 'text', text: part.text }]
  return part.call.kind === 'malformed' ? [{ kind: 'text', text: part.call.raw }] : []
}
