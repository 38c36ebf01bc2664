/** How much one request may hold; bodies are bounded in bytes before anything reads them. */
export const most = {
  messages: 10_000,
  parts: 10_000,
  tools: 1024,
  calls: 1024,
  answers: 128,
  nameLength: 256,
  tokens: 10_000_000,
} as const
