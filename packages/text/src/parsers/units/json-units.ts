import { closing, type Unit, type UnitResult } from '../blocks.ts'
import { type Broken, broken, callFromObject, callsOf, commonKeys, isName } from '../call.ts'
import { type JsonScan, type JsonValue, scanJson } from '../json.ts'
import { type Markers, markers } from '../markers.ts'
import type { ParsedCall } from '../parser.ts'
import type { Reader, Source } from '../source.ts'

/** Calls written as JSON between two markers. */
export interface JsonUnit {
  readonly open: readonly string[]
  /** What must follow the opening marker, blanks aside. */
  readonly lead?: string
  readonly close?: string
  /** What stands between one JSON value and the next, where several may follow one marker. */
  readonly separator?: string
  /** Reads one call from its object. @default an object with name and arguments */
  readonly read?: (object: JsonValue) => ParsedCall | Broken
}

/** JSON in tags: `<tool_call>{"name": …, "arguments": …}</tool_call>` and its relatives. */
export function jsonUnit(options: JsonUnit): Unit {
  const { open, lead, close, separator } = options
  const read = options.read ?? (object => callFromObject(object, commonKeys))
  return {
    opens: open,
    closes: close === undefined ? [] : [close],
    *read(source) {
      for (const marker of open) if (yield* source.take(marker)) break
      if (lead !== undefined) {
        yield* source.spaces()
        if (!(yield* source.take(lead))) return broken(`the call does not begin with ${lead}`)
      }
      const calls: ParsedCall[] = []
      do {
        yield* source.spaces()
        const json = yield* scanJson(source)
        if (json.kind === 'broken') return broken(json.problem)
        calls.push(...callsOf(json, read))
      } while (separator !== undefined && (yield* takeSeparator(source, separator)))
      const unclosed = close === undefined ? undefined : yield* closing(source, close)
      return unclosed ?? { kind: 'calls', calls }
    },
  }
}

/** Takes a separator and the blanks around it; it counts only where another object follows. */
function* takeSeparator(source: Source, separator: string): Reader<boolean> {
  for (let reach = 1; reach <= 64; reach++) {
    const text = yield* source.ahead(reach)
    if (text.length < reach) return false
    const rest = text.trimStart()
    if (rest === '') continue
    if (!rest.startsWith(separator)) return false
    const following = rest.slice(separator.length).trimStart()
    if (following === '{') {
      source.skip(reach - 1)
      return true
    }
    if (following !== '') return false
  }
  return false
}

/** Calls whose name stands before their JSON, each part set off by markers. */
export interface NamedUnit {
  readonly open: string
  /** What stands between the opening marker and the name. */
  readonly lead?: string
  /** What ends the name. */
  readonly separator: string
  /** Opening and closing line of a code fence around the JSON. */
  readonly fence?: { readonly open: string; readonly close: string }
  readonly close?: string
  /** Makes the call from what stands before the JSON and the JSON; empty if there is none. */
  readonly read: (head: string, json: string) => ParsedCall | Broken
}

/** Names and JSON: `<|tool_call_begin|>NAME<|tool_call_argument_begin|>{…}<|tool_call_end|>`. */
export function namedUnit(options: NamedUnit): Unit {
  const { open, lead, separator, fence, close } = options
  const ends = markers(separator)
  return {
    opens: [open],
    closes: close === undefined ? [] : [close],
    *read(source) {
      source.skip(open.length)
      if (lead !== undefined && !(yield* source.take(lead))) {
        return broken(`the call does not begin with ${lead}`)
      }
      const head = yield* readHead(source, ends)
      if (typeof head !== 'string') return head
      yield* source.spaces()
      const fenced = fence !== undefined && (yield* source.take(fence.open))
      yield* source.spaces()
      const json = yield* optionalJson(source, fenced ? fence.close : close)
      if (json.kind === 'broken') return broken(json.problem, head)
      const unclosed =
        (fenced ? yield* closing(source, fence.close) : undefined) ??
        (close === undefined ? undefined : yield* closing(source, close))
      return unclosed ? { ...unclosed, name: head } : toAttempt(options.read(head, json.text))
    },
  }
}

const toAttempt = (call: ParsedCall | Broken): UnitResult =>
  call.kind === 'broken' ? call : { kind: 'calls', calls: [call] }

/** The name before a marker, and the marker. */
function* readHead(source: Source, ends: Markers): Reader<string | Broken> {
  const found = yield* source.near(ends)
  if (!found) return broken(`the name is not followed by ${ends.strings[0]}`)
  const head = found.text.trim()
  if (!isName(head)) return broken(`${JSON.stringify(head.slice(0, 80))} is not a name`)
  source.skip(found.marker.length)
  return head
}

function* optionalJson(source: Source, close: string | undefined): Reader<JsonScan> {
  if (close !== undefined && (yield* source.next(close)))
    return { kind: 'value', text: '', edges: [] }
  return yield* scanJson(source)
}
