import { Door, everybody } from '../../src/doors/door/door.ts'
import type { EmbeddedModel } from '../../src/learn/model/model.ts'
import type { Foreign } from '../foreign.ts'

/**
 * An engine that really samples: an embedded model behind SGLang's `/generate`, with the ways in which
 * SGLang lets its weights be changed. A path that is no model is answered as SGLang answers it.
 */
export async function serveEngine(model: EmbeddedModel) {
  const loaded: string[] = []
  let version = 'default'
  const call = { signal: new AbortController().signal }
  const posts: Readonly<Record<string, (body: Foreign) => unknown>> = {
    '/generate': async ({ input_ids, sampling_params, rid }) => {
      // The weights may change while it samples: the version told is that of the start.
      const weight_version = version
      const drawn = await model.sample(
        {
          prompt: Int32Array.from(input_ids),
          maxTokens: sampling_params.max_new_tokens,
          temperature: sampling_params.temperature,
          topP: sampling_params.top_p,
          topK: Math.max(0, sampling_params.top_k),
          stop: sampling_params.stop_token_ids ?? [],
          seed: sampling_params.sampling_seed ?? 0,
        },
        call,
      )
      const ids = [...drawn.ids]
      const finish_reason =
        drawn.finish === 'stop'
          ? { type: 'stop', matched: ids.at(-1) }
          : { type: 'length', length: ids.length }
      const output_token_logprobs = ids.map((id, at) => [drawn.logprobs[at], id, null])
      const counts = { prompt_tokens: input_ids.length, completion_tokens: ids.length }
      const meta_info = { id: rid, finish_reason, ...counts, weight_version, output_token_logprobs }
      return { text: '', output_ids: ids, meta_info }
    },
    '/update_weights_from_disk': async ({ model_path, weight_version }) => {
      await model.load(model_path)
      loaded.push(model_path)
      version = weight_version
      return {
        success: true,
        message: 'Succeeded to update model weights.',
        num_paused_requests: 0,
      }
    },
    '/update_weight_version': async ({ new_version }) => {
      version = new_version
      return { success: true, message: 'Weight version updated', new_version }
    },
    '/continue_generation': async () => ({ status: 'ok' }),
    '/abort_request': async () => ({}),
  }
  const door = new Door({ host: '127.0.0.1' })
  const describe = () => ({ model_path: 'engine', weight_version: version })
  door.get('/model_info', describe)
  door.get('/get_model_info', describe)
  door.get('/server_info', () => ({ context_length: 256, version: '0.5.23' }))
  for (const [path, answer] of Object.entries(posts)) {
    door.post(path, { admit: everybody, changesNothing: true }, async (request, reply) => {
      try {
        return await answer(await request.json())
      } catch (error) {
        reply.status = 400
        return { success: false, message: (error as Error).message }
      }
    })
  }
  return {
    url: await door.listen(0),
    /** The folders whose weights were loaded, in order. */
    loaded,
    [Symbol.asyncDispose]: () => door.close(),
  }
}
