/** A place in a template's source, counted from one. */
export interface SourcePlace {
  readonly line: number
  readonly column: number
}

/** The line and column of an offset. */
export function placeOf(source: string, offset: number): SourcePlace {
  const before = source.slice(0, offset)
  const column = offset - before.lastIndexOf('\n')
  return { line: before.split('\n').length, column }
}

/** A template that Jinja would not compile. */
export class TemplateSyntaxError extends Error {
  override name = 'TemplateSyntaxError'
  readonly line: number
  readonly column: number
  constructor(problem: string, source: string, offset: number) {
    const { line, column } = placeOf(source, offset)
    super(`${problem} (template line ${line}, column ${column})`)
    this.line = line
    this.column = column
  }
}

/** A rendering that raised; `type` names the exception that Python would have raised. */
export class TemplateError extends Error {
  override name = 'TemplateError'
  readonly type: string
  /** What was raised, without the place. */
  readonly problem: string
  readonly line: number
  readonly column: number
  constructor(type: string, problem: string, place: SourcePlace & { readonly cause?: unknown }) {
    const { line, column, cause } = place
    super(`${type}: ${problem} (template line ${line}, column ${column})`, { cause })
    this.type = type
    this.problem = problem
    this.line = line
    this.column = column
  }
}
