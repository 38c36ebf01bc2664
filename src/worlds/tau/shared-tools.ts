import {
  arithmeticDouble,
  evaluateArithmetic,
  formatFloat,
  PythonError,
  type PythonValue,
  roundFloat,
} from '@espalier/text/python'
import { isInText, iterate, typeError } from './operations.ts'
import { type TauTool, tauTool } from './tool.ts'

/** The tool that ends a conversation. */
export const TRANSFER = 'transfer_to_human_agents'

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

/** `calculate`: arithmetic on what a policy wrote. */
export const calculateTool: TauTool = tauTool('calculate', ['expression'], (_, { expression }) =>
  typeof expression === 'string' ? calculate(expression) : refuseToCalculate(expression),
)

/** Python looks at the characters first, and only `eval` notices that there is no string. */
function refuseToCalculate(expression: PythonValue): string {
  for (const item of iterate(expression)) {
    if (!isInText(item, '0123456789+-*/(). ')) return 'Error: invalid characters in expression'
  }
  throw typeError('eval() arg 1 must be a string, bytes or code object')
}

/** `think`: a place to reason; it answers nothing. */
export const thinkTool: TauTool = tauTool('think', ['thought'], () => '')

/** `transfer_to_human_agents`: it succeeds whatever the summary says. */
export const transferTool: TauTool = tauTool(TRANSFER, ['summary'], () => 'Transfer successful')
