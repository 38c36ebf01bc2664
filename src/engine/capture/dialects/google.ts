import type { Asked, Dialect, ReadOptions } from './dialect.ts'
import { fieldsIn, toFields } from './fields.ts'
import { readGoogle } from './google-read.ts'
import { googleProblem, streamGoogle, writeGoogle } from './google-write.ts'

/** Google's generateContent. */
export const google: Dialect = {
  name: 'google',
  read: readGoogle,
  write: writeGoogle,
  openStream: streamGoogle,
  counting: { read: readCounted, write: tokens => ({ totalTokens: tokens }) },
  problem: googleProblem,
  streamsList: true,
  writeModels(name, _, isOne) {
    const one = {
      name: `models/${name}`,
      displayName: name,
      supportedGenerationMethods: ['generateContent', 'countTokens'],
    }
    return isOne ? one : { models: [one] }
  },
}

/** A counting body may hold the contents directly or wrap a whole generateContent request. */
function readCounted(given: unknown, options: ReadOptions): Asked {
  const body = toFields(given, 'the body')
  return readGoogle(fieldsIn(body, 'generateContentRequest') ?? body, options)
}
