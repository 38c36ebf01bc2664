import { anthropic } from './anthropic.ts'
import type { Dialect } from './dialect.ts'
import { google } from './google.ts'
import { openAiChat } from './openai/openai-chat.ts'
import { openAiResponses } from './openai/openai-responses.ts'

/** What a path of a dialect asks for. */
export type DialectRoute =
  | {
      readonly kind: 'answer'
      readonly dialect: Dialect
      readonly model?: string
      readonly stream?: boolean
    }
  | { readonly kind: 'count'; readonly dialect: Dialect; readonly model?: string }
  | { readonly kind: 'models'; readonly dialect: Dialect; readonly model?: string }

const googlePath = /^\/v1(?:beta|alpha)?\/(?:models|tunedModels)\/([^/:]{1,256}):(\w{1,64})$/
const modelPath = /^\/(v1(?:beta|alpha)?)\/models(?:\/(.{1,256}))?$/

/**
 * What a request asks for, by its method and path; nothing if no dialect has such a path. Base
 * URLs are written with and without the version, so that both are understood.
 */
export function routeOf(
  method: string,
  path: string,
  headers: Readonly<Record<string, unknown>>,
): DialectRoute | undefined {
  const full = /^\/v\d/.test(path) ? path : `/v1${path}`
  if (method === 'GET') return modelsRoute(full, headers)
  if (method !== 'POST') return undefined
  switch (full) {
    case '/v1/chat/completions':
      return { kind: 'answer', dialect: openAiChat }
    case '/v1/responses':
      return { kind: 'answer', dialect: openAiResponses }
    case '/v1/messages':
      return { kind: 'answer', dialect: anthropic }
    case '/v1/messages/count_tokens':
      return { kind: 'count', dialect: anthropic }
    default:
      return googleRoute(path)
  }
}

/** The dialect that a path belongs to, whether or not there is anything on it: its clients read what is wrong. */
export function dialectOf(path: string, headers: Readonly<Record<string, unknown>>): Dialect {
  const full = /^\/v\d/.test(path) ? path : `/v1${path}`
  if (/^\/v1(?:beta|alpha)\//.test(full) || googlePath.test(full)) return google
  if (/^\/v1\/responses(?:\/|$)/.test(full)) return openAiResponses
  if (/^\/v1\/messages(?:\/|$)/.test(full)) return anthropic
  return full === '/v1/chat/completions' ? openAiChat : spokenBy(headers)
}

function googleRoute(path: string): DialectRoute | undefined {
  const [, model, verb] = googlePath.exec(path) ?? []
  switch (verb) {
    case 'generateContent':
      return { kind: 'answer', dialect: google, model: model!, stream: false }
    case 'streamGenerateContent':
      return { kind: 'answer', dialect: google, model: model!, stream: true }
    case 'countTokens':
      return { kind: 'count', dialect: google, model: model! }
    default:
      return undefined
  }
}

function modelsRoute(
  path: string,
  headers: Readonly<Record<string, unknown>>,
): DialectRoute | undefined {
  const [matched, version, model] = modelPath.exec(path) ?? []
  if (!matched) return undefined
  const dialect = version === 'v1' ? spokenBy(headers) : google
  return { kind: 'models', dialect, ...(model !== undefined && { model }) }
}

/** The dialect of a client, by the headers that only it sends. */
function spokenBy(headers: Readonly<Record<string, unknown>>): Dialect {
  if (headers['x-goog-api-key'] !== undefined) return google
  return headers['anthropic-version'] === undefined ? openAiChat : anthropic
}

/** The models that a server has, as the dialect lists them; one alone if it was asked for. */
export function writeModels(
  { dialect, model }: { readonly dialect: Dialect; readonly model?: string },
  served: string,
  created: number,
): unknown {
  const name = model ?? served
  if (dialect.writeModels) return dialect.writeModels(name, created, model !== undefined)
  const one = { id: name, object: 'model', created, owned_by: 'espalier' }
  return model === undefined ? { object: 'list', data: [one] } : one
}
