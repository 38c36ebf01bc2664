import {
  arithmeticDouble,
  evaluateArithmetic,
  formatFloat,
  PythonError,
  roundFloat,
} from '@espalier/text/python'

const ALLOWED = /^[0-9+\-*/(). ]*$/

/**
 * What Python's `eval` would make of an arithmetic expression, rounded to cents and printed, or the
 * error it would report. Nothing is ever evaluated as code.
 */
export function calculate(expression: string): string {
  if (!ALLOWED.test(expression)) return 'Error: invalid characters in expression'
  try {
    return formatFloat(roundFloat(arithmeticDouble(evaluateArithmetic(expression)), 2))
  } catch (error) {
    if (error instanceof PythonError) return `Error: ${error.message}`
    throw error
  }
}
