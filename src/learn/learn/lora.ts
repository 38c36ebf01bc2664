import { SettingError } from '../../base/core/names/setting-error.ts'
import { type AdapterMap, type AdapterShape, adapterMaps, checkAdapter } from '../model/adapter.ts'
import type { EmbeddedModel } from '../model/model.ts'

/** The rank of an adapter that nobody describes. */
const usualRank = 16

/** Gives a pretrained model the adapter that it learns in, unless it came with one. */
export async function adaptModel(
  model: EmbeddedModel,
  { lora, seed }: { readonly lora: string | undefined; readonly seed: number },
): Promise<void> {
  if (model.base === undefined) {
    if (lora === undefined) return
    throw new SettingError(`--lora ${lora}: this model is small and is trained whole`)
  }
  const { adapter } = model
  if (!adapter) return await model.adapt(readLora(lora ?? `rank=${usualRank}`), { seed })
  if (lora === undefined || JSON.stringify(readLora(lora)) === JSON.stringify(adapter)) return
  const { rank, alpha, targets } = adapter
  throw new SettingError(
    `--lora ${lora}: the model came with an adapter: rank=${rank},alpha=${alpha},targets=${targets.join('+')}`,
  )
}

/** An adapter as the command line describes it: `rank=16,alpha=32,targets=q_proj+v_proj`. */
function readLora(text: string): AdapterShape {
  const problem = (what: string) =>
    new SettingError(`--lora ${text}: ${what}. It is rank=N[,alpha=A][,targets=MAP+MAP…]`)
  const items = new Map<string, string>()
  for (const item of text.split(',')) {
    const [, name, value] = /^(rank|alpha|targets)=(.+)$/.exec(item.trim()) ?? []
    if (name === undefined || value === undefined) throw problem(`"${item}" is not known`)
    items.set(name, value)
  }
  const rank = Number(items.get('rank') ?? usualRank)
  const alpha = Number(items.get('alpha') ?? 2 * rank)
  const targets = items.get('targets')?.split('+') ?? adapterMaps
  const strange = targets.find(name => !(adapterMaps as readonly string[]).includes(name))
  if (strange !== undefined)
    throw problem(`there is no map ${strange}, but ${adapterMaps.join(', ')}`)
  try {
    return checkAdapter({ rank, alpha, targets: targets as readonly AdapterMap[] })
  } catch (cause) {
    throw problem((cause as Error).message.replace(/\.$/, ''))
  }
}
