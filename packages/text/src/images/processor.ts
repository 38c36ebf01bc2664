import { Config, type ImageConfigs } from './config.ts'
import { gemma3Processor } from './families/gemma3.ts'
import { gemma4Processor } from './families/gemma4.ts'
import { pixtralProcessor } from './families/pixtral.ts'
import { qwenProcessor } from './families/qwen.ts'
import { smolvlmProcessor } from './families/smolvlm.ts'
import { type ImageProcessor, ImageRefusedError } from './layout.ts'

type OpenFamily = (config: Config, processor: Config) => ImageProcessor

/** Families by the image processors that name them; `Fast` and `Pil` behind a name lay out alike. */
const families: Readonly<Record<string, OpenFamily>> = {
  Qwen2VLImageProcessor: qwenProcessor,
  Qwen2_5_VLImageProcessor: qwenProcessor,
  Qwen3VLImageProcessor: qwenProcessor,
  Gemma3ImageProcessor: gemma3Processor,
  Gemma4ImageProcessor: gemma4Processor,
  SmolVLMImageProcessor: smolvlmProcessor,
  Idefics3ImageProcessor: smolvlmProcessor,
  PixtralImageProcessor: pixtralProcessor,
}

/** The image processors whose layouts are known. */
export const imageProcessors: readonly string[] = Object.keys(families)

/** Widest and highest image that is laid out: more is surely an attack on whoever decodes it. */
const longestSide = 65_535

/** Makes a model's image processor from the configuration in its folder; one that is not known is refused by name. */
export function imageProcessor({ preprocessor, processor }: ImageConfigs): ImageProcessor {
  const own = new Config('processor_config.json', processor)
  const config = new Config('preprocessor_config.json', preprocessor ?? nested(processor))
  const type = config.text('image_processor_type', '')
  const name = type.replace(/(?:Fast|Pil)$/, '')
  const open = Object.hasOwn(families, name) ? families[name] : undefined
  if (!open)
    throw new TypeError(
      `preprocessor_config.json: image_processor_type is "${type}"; layouts are known of ${imageProcessors.join(', ')}`,
    )
  const found = open(config, own)
  return { ...found, layout: size => found.layout(checked(size)) }
}

/** Newer folders keep the image processor's values within `processor_config.json`. */
function nested(processor: unknown): unknown {
  if (typeof processor !== 'object' || processor === null) return undefined
  return (processor as { readonly image_processor?: unknown }).image_processor
}

function checked<Size extends { readonly width: number; readonly height: number }>(
  size: Size,
): Size {
  for (const side of [size.width, size.height])
    if (!Number.isInteger(side) || side < 1 || side > longestSide)
      throw new ImageRefusedError(
        `an image of ${size.width} x ${size.height}: sides are whole numbers from 1 to ${longestSide}`,
      )
  return size
}
