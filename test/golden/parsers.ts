import { isDeepStrictEqual } from 'node:util'
import type { ToolDefinition } from '@espalier/text'
import { parseJson, toJavaScript } from '@espalier/text/python'
import {
  type OutputParser,
  openParser,
  type ParsedCall,
  type ParsedOutput,
  type ParserOptions,
  type ReasoningFormat,
  type ToolFormat,
} from '../../packages/text/src/parsers/parser.ts'
import { parameterSchema, schemaTypes } from '../../packages/text/src/parsers/schema.ts'
import type { GoldenResult, GoldenSuite } from './suite.ts'

interface NamedCall {
  readonly name: string
  readonly arguments: unknown
}

interface Row {
  readonly id: string
  readonly category: string
  readonly input: string
  readonly tools: readonly ToolDefinition[] | null
  readonly quirk: boolean
  readonly quirk_level?: 'none' | 'policy' | 'ambiguous' | 'bug'
  readonly format?: ToolFormat
  readonly parser?: ReasoningFormat
  readonly reasoning_parser?: ReasoningFormat
  readonly tool_parser?: ToolFormat
  readonly force_reasoning?: boolean | null
  readonly intent?: { readonly calls: readonly NamedCall[] }
  readonly expected: {
    readonly error?: string
    readonly normal_text?: string
    readonly calls?: readonly { readonly name: string; readonly arguments: string }[]
    readonly reasoning_text?: string
    readonly reasoning_content?: string | null
    readonly tool_calls?: readonly { readonly function?: { name: string }; name?: string }[] | null
  }
}

/** Categories of tool rows in which nothing is wrong with the output. */
const wellFormed: ReadonlySet<string> = new Set(
  `single multi text_before text_between text_after unicode nested scalars escapes angle
  stringy_scalars edge_whitespace_values empty_args whitespace no_call no_call_tricky
  marker_in_string extra_param dotted_name eos`.split(/\s+/),
)

/** Formats whose arguments are JSON, so that a marker within a string can be told from a marker. */
const jsonBodied: ReadonlySet<string> = new Set(
  `apertus2509 cohere_command4 deepseekv3 deepseekv31 gigachat3 gpt-oss hermes inkling interns1
  kimi_k2 llama3 mistral mistral_compact qwen25 trinity`.split(/\s+/),
)

/** How many of a format's rows with a faulty reference must come out as intended. */
const INTENDED = 0.98

/** Reads the golden rows of tool calls, of reasoning, and of both together. */
export const parsersSuite: GoldenSuite = {
  name: 'parsers',
  matches: path => /(?:^|\/)parsers\/[^/]+\.jsonl(?:\.gz)?$/.test(path),
  run(text) {
    const rows = text.split('\n').flatMap(line => (line === '' ? [] : [readJson(line) as Row]))
    const tally = new Tally()
    for (const row of rows) checkRow(row, tally)
    return tally.result()
  },
}

/** What was required, what failed, and the rows of which only most must come out as intended. */
class Tally {
  #passed = 0
  readonly #failures: string[] = []
  readonly #aside: string[] = []
  readonly #intended = new Map<string, { passed: number; failures: string[] }>()

  check(row: Row, rule: number, problem: string | undefined): void {
    if (problem === undefined) this.#passed++
    else this.#failures.push(`${row.id} (rule ${rule}): ${problem}`)
  }

  intend(row: Row, problem: string | undefined): void {
    const format = row.format ?? ''
    const counts = this.#intended.get(format) ?? { passed: 0, failures: [] }
    this.#intended.set(format, counts)
    if (problem === undefined) counts.passed++
    else counts.failures.push(`${row.id} (rule 2): ${problem}`)
  }

  setAside(row: Row): void {
    this.#aside.push(row.id)
  }

  result(): GoldenResult {
    const failures = [...this.#failures]
    const notes: string[] = []
    if (this.#aside.length > 0) {
      const ids = this.#aside.join(' ')
      notes.push(`rule 2 leaves ${this.#aside.length} undecided, two intentions look alike: ${ids}`)
    }
    let passed = this.#passed
    for (const [format, counts] of this.#intended) {
      const total = counts.passed + counts.failures.length
      const share = counts.passed / total
      if (counts.failures.length > 0) {
        const percent = (share * 100).toFixed(1)
        notes.push(`${format}: ${counts.passed} of ${total} as intended (${percent} %)`)
      }
      passed += share >= INTENDED ? total : counts.passed
      if (share < INTENDED) failures.push(...counts.failures)
    }
    return { passed, failures, notes }
  }
}

/** The data was written by Python, which has NaN in its JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return toJavaScript(parseJson(text))
  }
}

function checkRow(row: Row, tally: Tally): void {
  const parser = openParser(optionsOf(row))
  let output: ParsedOutput
  try {
    output = parser.parse(row.input)
  } catch (error) {
    tally.check(row, 4, `threw ${String(error)}`)
    return
  }
  tally.check(row, 5, streamingProblem(row, parser, output))
  if (row.parser) {
    if (!row.quirk) tally.check(row, 3, splitProblem(row, output))
  } else if (row.tool_parser) {
    if (!row.quirk) tally.check(row, 3, pipelineProblem(row, output))
  } else if (row.format === 'cline') {
    if (!row.quirk) tally.check(row, 3, callsProblem(row, output) ?? textProblem(row, output))
  } else checkToolRow(row, output, tally)
}

function optionsOf(row: Row): ParserOptions {
  const force = row.force_reasoning ?? undefined
  return {
    tools: row.format ?? row.tool_parser,
    reasoning: row.parser ?? row.reasoning_parser,
    schemas: row.tools ?? [],
    ...(force === undefined ? {} : { opensInReasoning: force }),
  }
}

function checkToolRow(row: Row, output: ParsedOutput, tally: Tally): void {
  if (row.category.startsWith('truncated')) tally.check(row, 4, cutProblem(row, output))
  if (!wellFormed.has(row.category)) return
  if (!row.quirk) {
    const eos = row.category === 'eos'
    tally.check(row, 1, callsProblem(row, output) ?? (eos ? undefined : textProblem(row, output)))
  } else if (row.quirk_level === 'bug') {
    if (row.category === 'marker_in_string' && !jsonBodied.has(row.format ?? '')) return
    const got = completeCalls(output)
    const wanted = intended(row)
    if (isDeepStrictEqual(got, wanted)) tally.intend(row, undefined)
    else if (isOpen(row, output)) tally.setAside(row)
    else tally.intend(row, differ(got, wanted))
  }
}

const intended = (row: Row): NamedCall[] =>
  (row.intent?.calls ?? []).map(call => ({ name: call.name, arguments: call.arguments }))

const expected = (row: Row): NamedCall[] =>
  (row.expected.calls ?? []).map(call => ({
    name: call.name,
    arguments: readJson(call.arguments),
  }))

const completeCalls = (output: ParsedOutput): unknown[] =>
  output.calls.map(call =>
    call.kind === 'call'
      ? { name: call.name, arguments: JSON.parse(call.arguments) as unknown }
      : { malformed: call.problem },
  )

const differ = (got: unknown, wanted: unknown): string =>
  `got ${JSON.stringify(got)?.slice(0, 400)}, wanted ${JSON.stringify(wanted)?.slice(0, 400)}`

/** The reference's calls; where it contradicts the intention, that is right as well. */
function callsProblem(row: Row, output: ParsedOutput): string | undefined {
  const got = completeCalls(output)
  const wanted = expected(row)
  if (isDeepStrictEqual(got, wanted)) return undefined
  if (row.intent && isDeepStrictEqual(got, intended(row))) return undefined
  return differ(got, wanted)
}

/**
 * Whether a call differs from the intention only where the format writes two intentions alike: raw
 * text of a parameter that the schema leaves open, as `12` for a text or a number, and an empty tag
 * of minimax-m3, which is an empty list as well as an empty object.
 */
function isOpen(row: Row, output: ParsedOutput): boolean {
  if (jsonBodied.has(row.format ?? '')) return false
  const wanted = intended(row)
  return (
    output.calls.length === wanted.length &&
    output.calls.every((call, index) => {
      const { name, arguments: written } = wanted[index]!
      if (call.kind !== 'call' || call.name !== name) return false
      const got = Object.entries(JSON.parse(call.arguments) as object)
      const meant = Object.entries(written as object)
      return isDeepStrictEqual(got.map(alike(row, name)), meant.map(alike(row, name)))
    })
  )
}

const alike =
  (row: Row, tool: string) =>
  ([key, value]: [string, unknown]): unknown => {
    const schema = parameterSchema(row.tools ?? [], tool, key)
    const types = schemaTypes(schema)
    const open = schema === undefined || (types.has('string') && types.size > 1)
    if (open) return [key, typeof value === 'string' ? value : JSON.stringify(value)]
    return [key, row.format === 'minimax-m3' ? withoutEmpty(value) : value]
  }

function withoutEmpty(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  if (entries.length === 0) return 'empty'
  return Array.isArray(value)
    ? value.map(withoutEmpty)
    : Object.fromEntries(entries.map(([key, item]) => [key, withoutEmpty(item)]))
}

const withoutSpace = (text: string): string => text.replace(/\s+/g, '')

function textProblem(row: Row, output: ParsedOutput): string | undefined {
  const wanted = row.expected.normal_text ?? ''
  return withoutSpace(output.content) === withoutSpace(wanted)
    ? undefined
    : `text: ${differ(output.content, wanted)}`
}

function splitProblem(row: Row, output: ParsedOutput): string | undefined {
  const got = [output.reasoning ?? '', output.content]
  const wanted = [row.expected.reasoning_text ?? '', row.expected.normal_text ?? '']
  return isDeepStrictEqual(got, wanted) ? undefined : differ(got, wanted)
}

function pipelineProblem(row: Row, output: ParsedOutput): string | undefined {
  const names = output.calls.map(call => (call.kind === 'call' ? call.name : call.problem))
  const got = [output.reasoning ?? '', names]
  const calls = row.expected.tool_calls ?? []
  const wanted = [
    row.expected.reasoning_content ?? '',
    calls.map(call => call.function?.name ?? call.name),
  ]
  return isDeepStrictEqual(got, wanted) ? undefined : differ(got, wanted)
}

/** A complete call of a cut output must be one that was written to its end. */
function cutProblem(row: Row, output: ParsedOutput): string | undefined {
  const wanted = intended(row)
  const complete = output.calls.filter(call => call.kind === 'call')
  const wrong = complete.findIndex((call, index) => !sameArguments(call, wanted[index]))
  return wrong < 0 ? undefined : `a cut call is complete: ${differ(complete[wrong], wanted[wrong])}`
}

function sameArguments(call: ParsedCall, wanted: NamedCall | undefined): boolean {
  if (call.kind !== 'call' || call.name !== wanted?.name) return false
  const got = JSON.parse(call.arguments) as Record<string, unknown>
  const written = wanted.arguments as Record<string, unknown>
  const same = (key: string) => {
    const value = written[key]
    return typeof value !== 'string' || String(got[key]).trim() === value.trim()
  }
  return isDeepStrictEqual(Object.keys(got), Object.keys(written)) && Object.keys(got).every(same)
}

/** Two chunkings that depend on the row's id alone: single characters now and then, and longer runs. */
function streamingProblem(row: Row, parser: OutputParser, whole: ParsedOutput): string | undefined {
  for (const longest of [3, 24]) {
    const streamed = stream(parser, chunksOf(row, longest))
    if (!isDeepStrictEqual(streamed, whole)) {
      return `streaming differs: ${differ(streamed, whole)}`
    }
  }
  return undefined
}

function stream(parser: OutputParser, chunks: readonly string[]): ParsedOutput {
  const open = parser.open()
  const parts = chunks.flatMap(chunk => open.push(chunk))
  const { parts: last, output } = open.end()
  const calls = [...parts, ...last].flatMap(part => (part.kind === 'call' ? [part.call] : []))
  const content = [...parts, ...last]
    .map(part => (part.kind === 'content' ? part.text : ''))
    .join('')
  return { ...output, calls, content }
}

function chunksOf(row: Row, longest: number): string[] {
  let state = [...row.id].reduce(
    (hash, letter) => (hash * 31 + letter.charCodeAt(0)) >>> 0,
    longest,
  )
  const chunks: string[] = []
  for (let index = 0; index < row.input.length; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    const length = 1 + Math.floor((state / 2 ** 32) * longest)
    chunks.push(row.input.slice(index, index + length))
    index += length
  }
  return chunks
}
