import type { Call } from '../../../base/core/call.ts'
import type { WeightSync, WrittenWeights } from '../../../base/core/trainer.ts'
import { asObject, type Fields, parseJson } from '../transport/reading.ts'
import { ask, getObject } from './ask.ts'
import type { Server } from './server.ts'

/** Whether requests under way are finished or aborted when an engine's weights change. */
export type UpdateMode = 'drain' | 'abort'

/** The steps by which an engine changes weights; `makeWeightSync` puts them in order for all engines. */
export interface EngineSteps {
  /** No sample runs from here on; with `abort` the running ones end at once. */
  pause(mode: UpdateMode, call: Call): Promise<void>
  resume(call: Call): Promise<void>
  loadModel(weights: WrittenWeights, mode: UpdateMode, call: Call): Promise<void>
  loadAdapter(name: string, path: string, call: Call): Promise<void>
  unloadAdapter(name: string, call: Call): Promise<void>
  /** Gives the weights that are served their name. */
  nameVersion(version: string, call: Call): Promise<void>
  /** The engine's name for its weights; undefined if it has none. */
  version(call: Call): Promise<string | undefined>
}

/** The result of an update. */
export interface Updated {
  readonly version: number
  /** The name under which the adapter is requested; undefined if the model itself changed. */
  readonly adapter: string | undefined
}

/**
 * Changes an engine's weights: pauses, loads, names and, whatever fails, resumes; then asks for their
 * name, so that no sample is attributed to weights that were not loaded.
 */
export function makeWeightSync(
  steps: EngineSteps,
  { mode, onUpdated }: { readonly mode: UpdateMode; onUpdated(updated: Updated): void },
): WeightSync {
  let served: string | undefined
  async function load(weights: WrittenWeights, call: Call): Promise<string | undefined> {
    if (weights.kind === 'model') {
      await steps.loadModel(weights, mode, call)
      return undefined
    }
    const name = `espalier-${weights.version}`
    // The same version again, after a run was resumed, is loaded anew; a server that was started again has none.
    if (name === served) await steps.unloadAdapter(name, call).catch(() => {})
    await steps.loadAdapter(name, weights.path, call)
    return name
  }
  return {
    async update(weights, call) {
      const before = served
      await steps.pause(mode, call)
      try {
        served = await load(weights, call)
        await steps.nameVersion(String(weights.version), call)
      } finally {
        await steps.resume(call)
      }
      await checkVersion(steps, weights, call)
      onUpdated({ version: weights.version, adapter: served })
      if (before !== undefined && before !== served) await steps.unloadAdapter(before, call)
    },
  }
}

async function checkVersion(
  steps: EngineSteps,
  { path, version }: WrittenWeights,
  call: Call,
): Promise<void> {
  const served = await steps.version(call)
  if (served === undefined || served === String(version)) return
  throw new Error(`the engine serves version "${served}" after ${path} was loaded as "${version}"`)
}

/** Sends JSON and reads the object that comes back; a plain-text answer also means success. */
async function post(server: Server, path: string, body: object, call: Call): Promise<Fields> {
  const answer = await ask(server, { path, body: Buffer.from(JSON.stringify(body)) }, call)
  const where = `POST ${server.url}${path}`
  const text = answer.toString('utf8').trimStart()
  return text.startsWith('{') ? asObject(parseJson(answer, where), where, 'the answer') : {}
}

/** SGLang's steps (0.5). */
export function sglangSteps(server: Server): EngineSteps {
  const succeed = async (path: string, body: object, call: Call): Promise<void> => {
    const { success, message, error_message: error } = await post(server, path, body, call)
    if (success !== false) return
    throw new Error(`POST ${server.url}${path}: ${message ?? error ?? 'it did not succeed'}`)
  }
  return {
    // Draining needs no pause: the server's update waits for running samples, and new ones wait for it.
    async pause(mode, call) {
      if (mode === 'abort') await post(server, '/pause_generation', { mode }, call)
    },
    async resume(call) {
      await post(server, '/continue_generation', {}, call)
    },
    loadModel: ({ path, version }, mode, call) =>
      succeed(
        '/update_weights_from_disk',
        {
          model_path: path,
          weight_version: String(version),
          flush_cache: true,
          abort_all_requests: mode === 'abort',
        },
        call,
      ),
    loadAdapter: (lora_name, lora_path, call) =>
      succeed('/load_lora_adapter', { lora_name, lora_path }, call),
    unloadAdapter: (lora_name, call) => succeed('/unload_lora_adapter', { lora_name }, call),
    nameVersion: (new_version, call) =>
      succeed('/update_weight_version', { new_version, abort_all_requests: false }, call),
    async version(call) {
      const info = await getObject(server, ['/model_info', '/get_model_info'], call)
      return info.weight_version === undefined ? undefined : String(info.weight_version)
    },
  }
}

/** vLLM's steps (0.32); it needs VLLM_SERVER_DEV_MODE=1, and for adapters VLLM_ALLOW_RUNTIME_LORA_UPDATING=1. */
export function vllmSteps(server: Server): EngineSteps {
  return {
    async pause(mode, call) {
      await post(server, `/pause?mode=${mode === 'abort' ? 'abort' : 'wait'}`, {}, call)
    },
    async resume(call) {
      await post(server, '/resume', {}, call)
    },
    async loadModel({ path }, _mode, call) {
      const body = { method: 'reload_weights', kwargs: { weights_path: path } }
      await post(server, '/collective_rpc', body, call)
      // What was computed by the old weights must not be continued.
      await post(server, '/reset_prefix_cache', {}, call)
    },
    async loadAdapter(lora_name, lora_path, call) {
      await post(server, '/v1/load_lora_adapter', { lora_name, lora_path }, call)
    },
    async unloadAdapter(lora_name, call) {
      await post(server, '/v1/unload_lora_adapter', { lora_name }, call)
    },
    async nameVersion(new_version, call) {
      await post(server, '/update_weight_version', { new_version }, call)
    },
    async version(call) {
      const { weight_version: served } = await getObject(server, ['/weight_info'], call)
      return served === undefined ? undefined : String(served)
    },
  }
}
