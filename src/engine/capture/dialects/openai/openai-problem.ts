import type { DialectProblem } from '../dialect.ts'
import { type ProblemKind, type RequestProblem, statusOfProblem } from '../problem.ts'

const types: Readonly<Record<ProblemKind, string>> = {
  invalid: 'invalid_request_error',
  unsupported: 'invalid_request_error',
  context: 'invalid_request_error',
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  'not-found': 'not_found_error',
  conflict: 'conflict_error',
  over: 'invalid_request_error',
  'too-large': 'invalid_request_error',
  'too-many': 'rate_limit_error',
  unavailable: 'server_error',
  internal: 'server_error',
}

const codes: Partial<Record<ProblemKind, string>> = {
  unsupported: 'unsupported_value',
  context: 'context_length_exceeded',
  unauthorized: 'invalid_api_key',
  'not-found': 'not_found',
  over: 'attempt_is_over',
  'too-many': 'rate_limit_exceeded',
}

/** A problem as OpenAI's API writes it. */
export function openAiProblem(problem: RequestProblem): DialectProblem {
  return { status: statusOfProblem(problem.kind), body: { error: openAiError(problem) } }
}

/** The error object inside it, which streams carry too. */
export function openAiError({ kind, message, field }: RequestProblem) {
  return { message, type: types[kind], param: field ?? null, code: codes[kind] ?? null }
}
