import type { Dialect } from '../dialect.ts'
import { openAiProblem } from './openai-problem.ts'
import { readOpenAiResponses } from './openai-responses-read.ts'
import { streamOpenAiResponse } from './openai-responses-stream.ts'
import { writeOpenAiResponse } from './openai-responses-write.ts'

/** OpenAI's Responses. */
export const openAiResponses: Dialect = {
  name: 'openai-responses',
  read: readOpenAiResponses,
  write: writeOpenAiResponse,
  openStream: streamOpenAiResponse,
  problem: openAiProblem,
}
