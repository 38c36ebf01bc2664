import { validatorOf } from '../../environments/tools/json-schema.ts'

type Check = ReturnType<typeof validatorOf>

const checks = new WeakMap<object, Check>()

/** What is wrong with a value by a client's schema; a schema that cannot be compiled finds nothing. */
export function checkBy(
  schema: Readonly<Record<string, unknown>>,
  value: unknown,
): readonly string[] {
  const check = checks.get(schema) ?? compile(schema)
  checks.set(schema, check)
  return check(value)
}

function compile(schema: Readonly<Record<string, unknown>>): Check {
  // A client's regular expression can take forever on a model's text.
  if (/"pattern(Properties)?":/.test(JSON.stringify(schema))) return () => []
  try {
    return validatorOf(schema)
  } catch {
    return () => []
  }
}
