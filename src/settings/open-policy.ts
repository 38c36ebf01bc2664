import type { Policy } from '../core/policy.ts'
import { openEmbedded } from '../model/embedded.ts'
import {
  type OpenScheme,
  openPolicy as openByScheme,
  type PolicyOptions,
} from '../policies/open-policy.ts'
import { openTinkerPolicy } from '../policies/tinker/session.ts'
import { byteModel, openRenderer } from './model-source.ts'

/** Schemes of policies that run inside this program, by name. */
const schemes: Readonly<Record<string, OpenScheme>> = {
  embedded: folder => openEmbedded(folder === '' ? undefined : folder),
  tinker: openTinkerPolicy,
}

/** Whether a URI names the policy that runs inside. */
export function isEmbeddedUri(uri: string): boolean {
  return uri === 'embedded' || uri.startsWith('embedded:')
}

/**
 * Opens a policy by its URI: `embedded`, `embedded:DIR`, `sglang:URL`, `vllm:URL`, `llama-cpp:URL`,
 * `openai:URL`, `tinker:URL`, `scripted:FILE`, `replay:FILE`. Several share the load. `model` names the folder whose
 * tokenizer encodes the texts of a script.
 */
export async function openPolicy(
  uri: string | readonly string[],
  options: PolicyOptions & { readonly model?: string } = {},
): Promise<Policy> {
  const { model = byteModel, ...given } = options
  // Embedded policies need no retries, and a wrapper would hide their model from trainers.
  const rest = [uri].flat().every(isEmbeddedUri) ? { ...given, retries: false as const } : given
  const isScripted = [uri].flat().some(each => each.startsWith('scripted:'))
  if (!isScripted || rest.encode) return await openByScheme(uri, { schemes, ...rest })
  const { tokenizer } = await openRenderer(model)
  return await openByScheme(uri, { schemes, encode: text => tokenizer.encode(text), ...rest })
}
