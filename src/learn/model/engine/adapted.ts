import { type AdapterShape, adapterMaps } from '../adapter.ts'
import * as layout from '../kernels/layout.ts'
import { up8 } from '../shape.ts'
import type { Heap } from './heap.ts'
import { adapterOffsets, adapterPlaces } from './parameters.ts'
import { type Plan, setFloat, setWord, type TrainedArrays, takeTrained } from './plan.ts'

/** Takes the memory of an adapter and tells the kernels where its factors lie. */
export function placeAdapter(heap: Heap, plan: Plan, adapter: AdapterShape): TrainedArrays {
  if (!plan.isFrozen) throw new Error('A model that is trained whole takes no adapter.')
  const { count, places, layerStride } = adapterPlaces(plan.shape, adapter)
  const arrays = takeTrained(heap, { count, places })
  const { inner } = adapterOffsets(plan.shape, adapter)
  adapterMaps.forEach((map, index) => {
    const found = inner.find(each => each.map === map)
    setWord(heap, layout.FACTORS + index * 8, (found?.down ?? 0) * 4)
    setWord(heap, layout.FACTORS + index * 8 + 4, (found?.up ?? 0) * 4)
  })
  setWord(heap, layout.ADAPTER_STRIDE, layerStride * 4)
  setFloat(heap, layout.ADAPTER_SCALE, adapter.alpha / adapter.rank)
  setWord(heap, layout.RANK, up8(adapter.rank))
  return arrays
}
