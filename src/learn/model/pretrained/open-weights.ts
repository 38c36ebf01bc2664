import { isGgufPath } from '@espalier/text/gguf'
import { openGguf } from '../gguf/gguf-file.ts'
import { openSafetensors } from '../safetensors-file.ts'
import type { WeightsFile } from '../weights-file.ts'

/** Opens the weights of a pretrained model; the thread that owns it reads them. */
export function openWeights(path: string): WeightsFile {
  return isGgufPath(path) ? openGguf(path).weights : openSafetensors(path)
}
