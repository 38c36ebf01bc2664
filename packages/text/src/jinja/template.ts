import { PythonError, UnsupportedError } from '../python/error.ts'
import { visitStatements } from './compile/analyze.ts'
import { compileStatements } from './compile/compile-statement.ts'
import type { CompilePlace } from './compile/place.ts'
import type { FunctionScope } from './compile/scope.ts'
import { newFunction, newSymbols } from './compile/scope.ts'
import { placeOf, TemplateError, TemplateSyntaxError } from './error.ts'
import type { TemplateInput } from './foreign.ts'
import type { Execute, RunFrame } from './frame.ts'
import { compileEntry, makeFrame } from './frame.ts'
import type { Hole } from './hidden.ts'
import { TEMPLATE_LANGUAGE } from './language.ts'
import { normalizeSource, tokenize } from './parse/lexer.ts'
import { parseTemplate } from './parse/parse-statement.ts'
import type { Statement } from './parse/syntax.ts'
import { type Limits, type Moment, portion, type Run } from './run.ts'
import { emptyText } from './text.ts'
import { type GivenVariables, Variables } from './variables.ts'

/** Settings of one rendering. */
export interface RenderOptions {
  /** The time that `strftime_now` gives; without it, templates that call it fail. */
  readonly clock?: () => Date
  /** Bounds on the work, so that no template can hang or exhaust the process. */
  readonly limits?: Partial<Limits>
  /** Called again and again while a rendering takes long. */
  readonly onLong?: () => void
}

/** A half-open range of UTF-16 offsets. */
export type TextRange = readonly [start: number, end: number]

/** What a template made of its variables. */
export interface Rendering {
  readonly text: string
  /** The text made inside generation blocks, as transformers' assistant mask has it. */
  readonly generated: readonly TextRange[]
  /** The characters that came from values wrapped with `markForeign`, in order and joined. */
  readonly foreign: readonly TextRange[]
  /** The places of texts that were hidden from the rendering; offsets count them as empty. */
  readonly holes: readonly Hole[]
  /** The dates and times that the template wrote. */
  readonly moments: readonly Moment[]
}

/** The variables of a template: by name, as Python values or as plain JavaScript data. */
export type TemplateVariables =
  | ReadonlyMap<string, TemplateInput>
  | Readonly<Record<string, unknown>>

/** A compiled chat template. */
export interface Template {
  /** Renders with these variables; raises `TemplateError` if transformers would raise. */
  render(variables: TemplateVariables, options?: RenderOptions): Rendering
}

const DEFAULT_LIMITS: Limits = { steps: 25_000_000, characters: 16_000_000, seconds: 10 }

interface Program {
  readonly source: string
  readonly scope: FunctionScope
  readonly entry: ((frame: RunFrame) => void) | undefined
  readonly body: Execute
}

/** Compiles a chat template in the dialect of transformers' environment. */
export function compileTemplate(source: string): Template {
  const normalized = normalizeSource(source)
  const program = withinStack(normalized, () => compileProgram(normalized))
  return { render: (variables, options = {}) => render(program, variables, options) }
}

function withinStack<T>(source: string, compile: () => T): T {
  try {
    return compile()
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new TemplateSyntaxError('The template nests too deeply', source, 0)
  }
}

function compileProgram(source: string): Program {
  const stream = { source, tokens: tokenize(source), position: 0, depth: 0 }
  const statements = parseTemplate(stream)
  const scope = newFunction(undefined)
  const symbols = newSymbols(scope, undefined)
  visitStatements(symbols, statements)
  const place: CompilePlace = {
    template: { source, blocks: new Set(), hasBlocks: hasBlocks(statements), cost: 0 },
    symbols,
    isSoft: false,
    inLoop: false,
    isTop: true,
  }
  const body = compileStatements(place, statements)
  return { source, scope, entry: compileEntry(symbols), body }
}

function hasBlocks(statements: readonly Statement[]): boolean {
  return statements.some(statement => {
    if (statement.kind === 'block') return true
    if (statement.kind === 'if') {
      return (
        statement.branches.some(branch => hasBlocks(branch.body)) || hasBlocks(statement.otherwise)
      )
    }
    return 'body' in statement && hasBlocks(statement.body)
  })
}

function render(program: Program, variables: TemplateVariables, options: RenderOptions): Rendering {
  const limits = options.limits ? { ...DEFAULT_LIMITS, ...options.limits } : DEFAULT_LIMITS
  const root = emptyText()
  const run: Run = {
    variables: new Variables(variables as GivenVariables),
    limits,
    language: TEMPLATE_LANGUAGE,
    clock: options.clock,
    onLong: options.onLong,
    root,
    generated: [],
    exports: new Map(),
    moments: [],
    output: root,
    steps: Math.min(portion, limits.steps),
    later: Math.max(0, limits.steps - portion),
    until: performance.now() + limits.seconds * 1000,
    depth: 0,
    at: 0,
  }
  execute(program, run)
  const { text, foreign = [], holes = [] } = root
  const { generated, moments } = run
  return { text, generated, foreign: joinRanges(foreign), holes, moments }
}

function execute(program: Program, run: Run): void {
  try {
    const frame = makeFrame(program.scope, undefined, run)
    program.entry?.(frame)
    program.body(frame)
  } catch (cause) {
    const place = { ...placeOf(program.source, run.at), cause }
    if (cause instanceof PythonError) throw new TemplateError(cause.type, cause.message, place)
    if (cause instanceof UnsupportedError) throw new TemplateError(cause.name, cause.message, place)
    if (cause instanceof RangeError) {
      throw new TemplateError('RecursionError', 'maximum recursion depth exceeded', place)
    }
    throw cause
  }
}

function joinRanges(offsets: readonly number[]): TextRange[] {
  const ranges: [number, number][] = []
  for (let index = 0; index < offsets.length; index += 2) {
    const [start, end] = [offsets[index] as number, offsets[index + 1] as number]
    const before = ranges.at(-1)
    if (before && before[1] >= start) before[1] = end
    else if (start < end) ranges.push([start, end])
  }
  return ranges
}
