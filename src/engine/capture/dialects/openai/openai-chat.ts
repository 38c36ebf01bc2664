import type { Dialect } from '../dialect.ts'
import { readOpenAiChat } from './openai-chat-read.ts'
import { streamOpenAiChat, writeOpenAiChat } from './openai-chat-write.ts'
import { openAiProblem } from './openai-problem.ts'

/** OpenAI's Chat Completions. */
export const openAiChat: Dialect = {
  name: 'openai-chat',
  read: readOpenAiChat,
  write: writeOpenAiChat,
  openStream: streamOpenAiChat,
  problem: openAiProblem,
}
