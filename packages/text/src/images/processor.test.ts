import { describe, expect, it } from 'vitest'
import { countTokens, layoutText } from './layout.ts'
import { imageProcessor } from './processor.ts'

const qwen = { image_processor_type: 'Qwen2VLImageProcessorFast', patch_size: 14, merge_size: 2 }

describe('an image processor', () => {
  it('lays an image out by its size alone', () => {
    const processor = imageProcessor({
      preprocessor: { ...qwen, size: { shortest_edge: 3136, longest_edge: 12845056 } },
    })
    // 1280 x 720 becomes 46 x 26 patches of 28 pixels.
    expect(processor.layout({ width: 1280, height: 720 })).toEqual([['<|image_pad|>', 46 * 26]])
    expect(countTokens(processor.layout({ width: 28, height: 28 }))).toBe(4)
  })

  it('reads values of older folders, and of newer ones within processor_config.json', () => {
    const older = imageProcessor({ preprocessor: { ...qwen, min_pixels: 784, max_pixels: 1568 } })
    const newer = imageProcessor({
      preprocessor: undefined,
      processor: { image_processor: { ...qwen, size: { shortest_edge: 784, longest_edge: 1568 } } },
    })
    for (const processor of [older, newer])
      expect(layoutText(processor.layout({ width: 900, height: 900 }))).toBe('<|image_pad|>')
  })

  it('that is not known is refused by name, with those that are', () => {
    expect(() =>
      imageProcessor({ preprocessor: { image_processor_type: 'CLIPImageProcessor' } }),
    ).toThrow(/"CLIPImageProcessor"; layouts are known of Qwen2VLImageProcessor/)
    expect(() => imageProcessor({ preprocessor: { ...qwen, patch_size: 0 } })).toThrow(
      /patch_size is 0, not a whole number/,
    )
    expect(() =>
      imageProcessor({
        preprocessor: { image_processor_type: 'Gemma3ImageProcessor', do_pan_and_scan: true },
      }),
    ).toThrow(/do_pan_and_scan/)
  })

  it('refuses sizes that no image has', () => {
    const processor = imageProcessor({ preprocessor: qwen })
    expect(() => processor.layout({ width: 0, height: 4 })).toThrow(/0 x 4/)
    expect(() => processor.layout({ width: 70_000, height: 4 })).toThrow(/from 1 to 65535/)
    expect(() => processor.layout({ width: 1, height: 300 })).toThrow(/300 times longer/)
  })
})
