import { PromptTooLong } from '../../../base/core/policy.ts'
import { ServerError, type ServerErrorDetails } from './server-error.ts'

/** How servers say that a prompt, or a prompt and its answer, do not fit their context. */
const wordings = [
  // The codes of OpenAI and its relatives, of llama.cpp.
  /context_length_exceeded|exceed_context_size/i,
  // vLLM, SGLang for a prompt with its answer, OpenAI, DeepSeek, Mistral, xAI.
  /maximum (?:context|prompt|model|sequence) length/i,
  // SGLang for a prompt alone, llama.cpp, llama-cpp-python, Ollama.
  /(?:exceeds?|exceeded|longer than) [^.]{0,60}(?:context (?:length|size|window)|max_model_len|session_len)/i,
  // Anthropic, Bedrock, Fireworks.
  /(?:prompt|input) is too long/i,
  // Groq, Cerebras.
  /reduce the length of (?:the|your) (?:messages|input|prompt)/i,
  // Gemini.
  /input token count [^.]{0,40}exceeds the maximum/i,
  // Text generation inference, Together.
  /tokens \+ `max_new_tokens` must be <=|`inputs` must have less than \d+ tokens/i,
  // Moonshot.
  /exceeded model token limit/i,
]

/** Refusals that quote the request, and those of a rate: shortening one prompt does not help against them. */
const others = /\d+ validation errors?:|rate_limit|tokens per minute/i

const statuses = new Set([400, 413, 422])

/** Whether a refusal says that the prompt is too long; no other 4xx is the policy's doing. */
export function saysTooLong(status: number | undefined, said: string): boolean {
  if (status === undefined || !statuses.has(status) || others.test(said)) return false
  return wordings.some(wording => wording.test(said))
}

/** The error of a request that a server refused; `said` is all that it said about it. */
export function refusal(message: string, said: string, details: ServerErrorDetails): Error {
  return saysTooLong(details.status, said)
    ? new PromptTooLong(message)
    : new ServerError('status', message, details)
}
