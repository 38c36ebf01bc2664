import type { Block, Expression, PythonDict, PythonValue } from '@espalier/text/python'
import { literalValue, parseModule } from '@espalier/text/python'

/**
 * A constructor call in a Python source, such as `Task(user_id="…", actions=[…])`: its name and its
 * keyword arguments. Only these and literals are ever read; nothing is evaluated.
 */
export interface Construction {
  readonly name: string
  readonly fields: ReadonlyMap<string, Construct>
}

/** A literal, a construction, or a list of constructions. */
export type Construct = PythonValue | Construction | readonly Construction[]

/** What a source assigns to a variable. */
function assigned(source: string, variable: string): Expression {
  for (const statement of parseModule(source)) {
    const targets =
      statement.kind === 'assign'
        ? statement.targets
        : statement.kind === 'annotate'
          ? [statement.target]
          : []
    const isWanted = targets.some(target => target.kind === 'name' && target.name === variable)
    if (isWanted && 'value' in statement && statement.value) return statement.value
  }
  throw new Error(`The source assigns nothing to ${variable}.`)
}

/** Reads the list of constructions that the source assigns to a variable. */
export function readAssignment(source: string, variable: string): readonly Construction[] {
  const value = assigned(source, variable)
  if (value.kind === 'list') return value.items.map(readConstruction)
  throw new Error(`Expected a list in ${variable}, found ${describe(value)}.`)
}

/** Reads the literal that the source assigns to a variable. */
export const readAssignedLiteral = (source: string, variable: string): PythonValue =>
  literalValue(assigned(source, variable))

/** Reads the literal that the method `get_info` of a tool returns. */
export function readToolSchema(source: string): PythonDict {
  const result = returned(parseModule(source))
  if (result === undefined) throw new Error('The source has no get_info that returns.')
  const value = literalValue(result)
  if (value instanceof Map) return value
  throw new Error('What get_info returns is not a dict.')
}

/** What the first function `get_info` of a module or of its classes returns. */
function returned(block: Block): Expression | undefined {
  for (const statement of block) {
    if (statement.kind === 'function' && statement.shape.name === 'get_info') {
      const result = statement.body.find(each => each.kind === 'return')
      if (result?.kind === 'return' && result.value) return result.value
    }
    const inner = statement.kind === 'class' ? returned(statement.body) : undefined
    if (inner) return inner
  }
  return undefined
}

/** The names in a list such as `ALL_TOOLS = [Calculate, Think]`. */
export function readNames(source: string, variable: string): readonly string[] {
  const value = assigned(source, variable)
  const items = value.kind === 'list' || value.kind === 'tuple' ? value.items : []
  return items.flatMap(item => (item.kind === 'name' ? [item.name] : []))
}

/** The triple-quoted f-strings of a source, as templates with their placeholders, in order. */
export function readTemplates(source: string): readonly string[] {
  return source
    .split('f"""')
    .slice(1)
    .map(rest => rest.slice(0, rest.indexOf('"""')))
}

/** Fills an f-string's placeholders; doubled braces become single ones. */
export function fillTemplate(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{\{|\}\}|\{(\w+)\}/g, (match, name: string | undefined) => {
    if (name === undefined) return match[0] as string
    const value = values[name]
    if (value === undefined) {
      throw new Error(
        `The prompt asks for {${name}}. Known: ${Object.keys(values).join(', ') || 'nothing'}.`,
      )
    }
    return value
  })
}

const describe = (expression: Expression): string =>
  expression.kind === 'call' && expression.called.kind === 'name'
    ? `${expression.called.name}(…)`
    : `an expression (${expression.kind})`

const isConstruction = (expression: Expression): boolean =>
  expression.kind === 'call' &&
  expression.called.kind === 'name' &&
  /^[A-Z]/.test(expression.called.name)

function readConstruction(expression: Expression): Construction {
  if (
    expression.kind !== 'call' ||
    expression.called.kind !== 'name' ||
    !isConstruction(expression)
  ) {
    throw new Error(`Expected a call such as Task(…), found ${describe(expression)}.`)
  }
  const fields = new Map<string, Construct>()
  for (const { name, value } of expression.arguments) {
    if (name === undefined)
      throw new Error(`${describe(expression)} has an argument without a name.`)
    fields.set(name, readConstruct(value))
  }
  return { name: expression.called.name, fields }
}

/** A list whose first item is a construction is a list of constructions; everything else is a literal. */
function readConstruct(expression: Expression): Construct {
  const isList = expression.kind === 'list' && expression.items[0] !== undefined
  if (isList && isConstruction(expression.items[0] as Expression)) {
    return expression.items.map(readConstruction)
  }
  return isConstruction(expression) ? readConstruction(expression) : literalValue(expression)
}
