import type { Policy } from '../../base/core/policy.ts'
import {
  type OpenScheme,
  openPolicy as openByScheme,
  type PolicyOptions,
} from '../../engine/policies/open-policy.ts'
import { byteModel, openRenderer } from './model-source.ts'
import { offered } from './offered.ts'

/** Schemes besides those of servers and files, by name. */
function schemes(): Readonly<Record<string, OpenScheme>> {
  const more = Object.entries(offered().schemes).map(([name, { open }]) => [name, open] as const)
  return { ...Object.fromEntries(more), tinker: openTinker }
}

const openTinker: OpenScheme = async (rest, options) => {
  const { openTinkerPolicy } = await import('../../engine/policies/tinker/session.ts')
  return await openTinkerPolicy(rest, options)
}

/** Whether a URI names a policy that has its weights inside. */
export function isInsideUri(uri: string): boolean {
  const [scheme = ''] = uri.split(':', 1)
  const known = offered().schemes
  return Object.hasOwn(known, scheme) && known[scheme]!.isInside
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
  const { model = byteModel, ...rest } = options
  const isScripted = [uri].flat().some(each => each.startsWith('scripted:'))
  if (!isScripted || rest.encode) return await openByScheme(uri, { schemes: schemes(), ...rest })
  const { tokenizer } = await openRenderer(model)
  return await openByScheme(uri, {
    schemes: schemes(),
    encode: text => tokenizer.encode(text),
    ...rest,
  })
}
