import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { byteModel } from '../src/run/settings/model-source.ts'

/** Writes the byte model as a folder of a model that sees, of Qwen's family. */
export function writeSeeingModel(folder: string): void {
  cpSync(byteModel, folder, { recursive: true })
  const file = join(folder, 'tokenizer.json')
  const tokenizer = JSON.parse(readFileSync(file, 'utf8'))
  const [plain] = tokenizer.added_tokens
  for (const content of ['<|vision_start|>', '<|image_pad|>', '<|vision_end|>'])
    tokenizer.added_tokens.push({ ...plain, id: tokenizer.added_tokens.at(-1).id + 1, content })
  writeFileSync(file, JSON.stringify(tokenizer))
  const preprocessor = {
    image_processor_type: 'Qwen2VLImageProcessor',
    patch_size: 14,
    size: { shortest_edge: 784, longest_edge: 784 * 64 },
  }
  writeFileSync(join(folder, 'preprocessor_config.json'), JSON.stringify(preprocessor))
}
