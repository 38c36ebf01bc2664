import { didYouMean } from '../../base/core/names/nearest.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { type PolicyScheme, type ReadUri, readUri } from './schemes.ts'
import { type ExpertShape, readExpertShape } from './servers/routed-experts.ts'
import { sessionPattern } from './servers/session-key.ts'
import type { VllmEndpoint } from './servers/vllm-request.ts'
import type { UpdateMode } from './servers/weight-sync.ts'
import type { TinkerServerName } from './tinker/server-kind.ts'

/** What a policy's URI contains besides the address: `vllm:URL?logprobs=processed`, `openai:URL#MODEL`. */
export interface PolicyParameters {
  readonly logprobs?: 'raw' | 'processed'
  readonly endpoint?: VllmEndpoint
  /** Asks for the experts that served each token, of a model with so many layers and experts per token. */
  readonly experts?: ExpertShape
  readonly servedModel?: string
  /** What tells routers a request's session: a header, or `body:` and a field. */
  readonly session?: string
  /** What happens to requests under way when weights change. */
  readonly update?: UpdateMode
  /** Which program speaks Tinker's API there. */
  readonly server?: TinkerServerName
}

/** An address and its parameters. */
export interface PolicyAddress {
  readonly address: string
  readonly parameters: PolicyParameters
}

/** What an address is read from. */
type AddressParts = Pick<ReadUri, 'name' | 'rest'> & {
  readonly scheme?: Pick<PolicyScheme, 'parameters'> | undefined
}

/**
 * Splits parameters and the served model off the end of a URI. Other schemes name files, in which `?`
 * and `#` are ordinary characters.
 */
export function readAddress(
  uri: string,
  { name: scheme, rest, scheme: { parameters: possible } = {} }: AddressParts = readUri(uri),
): PolicyAddress {
  if (!possible) return { address: rest, parameters: {} }
  const [beforeModel, servedModel] = splitAt(rest, '#')
  const [address, query] = splitAt(beforeModel, '?')
  const parameters: Record<string, string | ExpertShape> =
    servedModel === undefined ? {} : { servedModel }
  for (const [name, value] of new URLSearchParams(query ?? '')) {
    const values = Object.hasOwn(possible, name) ? possible[name] : undefined
    if (!values) throw unknownParameter(scheme, name, { uri, names: Object.keys(possible) })
    if (name === 'experts') {
      parameters.experts = expertsOf(value, uri)
      continue
    }
    if (name === 'session') {
      parameters.session = sessionOf(value, uri)
      continue
    }
    if (!values.includes(value)) {
      throw new SettingError(
        `The policy "${uri}": ${name} is ${values.join(' or ')}, not "${value}".`,
      )
    }
    parameters[name] = value
  }
  return { address, parameters: parameters as PolicyParameters }
}

function expertsOf(value: string, uri: string): ExpertShape {
  const shape = readExpertShape(value)
  if (shape) return shape
  throw new SettingError(
    `The policy "${uri}": experts is the model's layers and experts per token, as in 48x8, not "${value}".`,
  )
}

function sessionOf(value: string, uri: string): string {
  if (sessionPattern.test(value)) return value
  throw new SettingError(
    `The policy "${uri}": session is the name of a header, or body: and that of a field, as in X-Routing-Key or body:session_params.session_id, not "${value}".`,
  )
}

function splitAt(text: string, mark: string): readonly [string, string | undefined] {
  const at = text.indexOf(mark)
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

function unknownParameter(
  scheme: string,
  name: string,
  { uri, names }: { readonly uri: string; readonly names: readonly string[] },
): Error {
  const possible = names.length === 0 ? 'none' : names.join(', ')
  const hint = didYouMean(name, names)
  return new SettingError(
    `The policy "${uri}": ${scheme} has no parameter "${name}". Known: ${possible}.${hint}`,
  )
}
