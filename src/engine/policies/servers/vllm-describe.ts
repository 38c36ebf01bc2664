import type { Call } from '../../../base/core/call.ts'
import type { PolicyDescription, PrefixCache } from '../../../base/core/policy.ts'
import { asArray, asCount, asObject, wrong } from '../transport/reading.ts'
import { ServerError } from '../transport/server-error.ts'
import { getObject, readMetrics, readPressure } from './ask.ts'
import type { Server } from './server.ts'

function isBroken(cause: unknown): boolean {
  return cause instanceof ServerError && (cause.status ?? 0) >= 500
}

function noModels(where: string, cause: unknown): Error {
  const words = cause instanceof Error ? cause.message : String(cause)
  return new Error(`${where} fails: name the model with --served-model. ${words}`, { cause })
}

/** What a vLLM server says of itself. */
export async function describeVllm(
  server: Server,
  servedModel: string | undefined,
  call: Call,
): Promise<PolicyDescription> {
  const where = `GET ${server.url}/v1/models`
  const { data } = await getObject(server, ['/v1/models'], call).catch(cause => {
    // If the caller named the model, the list of models is not needed.
    if (servedModel !== undefined && isBroken(cause)) return { data: [{ id: servedModel }] }
    throw isBroken(cause) ? noModels(where, cause) : cause
  })
  const cards = asArray(data, where, 'data').map(card => asObject(card, where, 'a model'))
  const card = cards.find(({ id }) => servedModel === undefined || id === servedModel)
  if (!card) {
    const served = cards.map(({ id }) => id).join(', ')
    throw wrong(where, `the server does not serve "${servedModel}". It serves: ${served}`)
  }
  const context = asCount(card.max_model_len, where, 'max_model_len')
  const model = card.root ?? card.id
  const logprobs = await saidLogprobs(server, call)
  return {
    ...(logprobs && { logprobs }),
    ...(typeof model === 'string' ? { model } : {}),
    ...(context === undefined ? {} : { context }),
  }
}

/** How much of all prompts a server has found in its cache: a plain one says so in its metrics alone. */
export async function countVllmCache(server: Server, call: Call): Promise<PrefixCache | undefined> {
  const metrics = await readMetrics(server, call)
  const sum = (name: string): number | undefined => {
    const counts = metrics.valuesOf(`vllm:prefix_cache_${name}_total`)
    return counts.length === 0 ? undefined : counts.reduce((total, count) => total + count, 0)
  }
  const [asked, found] = [sum('queries'), sum('hits')]
  return asked === undefined || found === undefined ? undefined : { asked, found }
}

/** How full the cache of the fullest engine is; before version 0.11 the metric had another name. */
export function pressureOfVllm(server: Server, call: Call): Promise<number | undefined> {
  return readPressure(server, ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'], call)
}

/** What a server in development mode says of its `--logprobs-mode`; others do not know the path. */
async function saidLogprobs(
  server: Server,
  call: Call,
): Promise<PolicyDescription['logprobs'] | undefined> {
  const path = '/server_info?config_format=json'
  const said = await getObject(server, [path], call).catch(() => undefined)
  const mode = /"logprobs_mode":"(raw|processed)_logprobs"/.exec(JSON.stringify(said) ?? '')?.[1]
  return mode as PolicyDescription['logprobs'] | undefined
}
