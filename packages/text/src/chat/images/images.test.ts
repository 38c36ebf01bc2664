import { describe, expect, it } from 'vitest'
import { hasTemplates, openTemplate } from '../../../../../test/fixtures/chat-templates.ts'
import { formatReference, type ImageConfigs } from '../../images/index.ts'
import type { ImagePart, Message } from '../../message.ts'
import { concat } from '../bridge.ts'
import type { ModelRenderer } from '../renderer.ts'

const digest = '0123456789abcdef'.repeat(4)

/** An image of this size whose bytes are elsewhere. */
function image(width: number, height: number): ImagePart {
  const facts = { digest, kind: 'png', width, height, bytes: 100, orientation: 1 } as const
  return { type: 'image_url', image_url: { url: formatReference(facts) } }
}

const qwen = {
  preprocessor: { image_processor_type: 'Qwen2VLImageProcessor', patch_size: 14, merge_size: 2 },
}
const pixtral = {
  preprocessor: {
    image_processor_type: 'PixtralImageProcessor',
    size: { longest_edge: 1540 },
    patch_size: 14,
  },
  processor: { spatial_merge_size: 2 },
}
const gemma4 = {
  preprocessor: { image_processor_type: 'Gemma4ImageProcessor', max_soft_tokens: 70 },
}

interface Model {
  readonly template: string
  readonly images: ImageConfigs
  readonly controls?: readonly string[]
  /** What an image of 84 x 56 pixels is written as. */
  readonly written: string
}

const models: readonly Model[] = [
  {
    template: 'Qwen3.5-4B',
    images: qwen,
    written: `<|vision_start|>${'<|image_pad|>'.repeat(6)}<|vision_end|>`,
  },
  {
    template: 'MiMo-VL',
    images: qwen,
    written: `<|vision_start|>${'<|image_pad|>'.repeat(6)}<|vision_end|>\n`,
  },
  {
    template: 'Mistral-Small-3.2-24B-Instruct-2506',
    images: pixtral,
    controls: ['[IMG]', '[IMG_BREAK]', '[IMG_END]'],
    written: '[IMG][IMG][IMG][IMG_BREAK][IMG][IMG][IMG][IMG_END]',
  },
  {
    template: 'google-gemma-4-31B-it',
    images: gemma4,
    controls: ['<|image>', '<|image|>', '<image|>'],
    written: `<|image>${'<|image|>'.repeat(60)}<image|>`,
  },
]

const renderers = new Map<string, ModelRenderer>()
function open({ template, images, controls = [] }: Model): ModelRenderer {
  const known = renderers.get(template) ?? openTemplate(template, { images, controls })
  renderers.set(template, known)
  return known
}

const seen: Message = {
  role: 'user',
  content: [{ type: 'text', text: 'Look: ' }, image(84, 56), { type: 'text', text: ' and say.' }],
}

if (!hasTemplates) console.warn('skipped: no published chat templates beside this checkout')

describe.skipIf(!hasTemplates)('images in real templates', () => {
  it.each(models)('are written by $template as its processor lays them out', model => {
    const renderer = open(model)
    const ids = renderer.render([seen], [])
    expect(renderer.decode(ids)).toContain(model.written)
    const [place] = renderer.images!.locate(ids, [seen])
    const own = model.written.replace(/^<\|vision_start\|>|<\|vision_end\|>\n?$/g, '')
    expect(renderer.decode(ids.subarray(place!.start, place!.end))).toBe(own)
    expect(renderer.images!.count(image(84, 56))).toBe(place!.end - place!.start)
  })

  it.each(models)('stand in a bridge of $template as in the whole conversation', model => {
    const renderer = open(model)
    const asked: Message = { role: 'user', content: 'Go.' }
    const messages: Message[] = [asked, { role: 'assistant', content: 'Where?' }, seen]
    const opening = renderer.render([asked], [])
    const turn = renderer.encodeReply({ role: 'assistant', content: 'Where?' }, [])
    const path = concat(opening, turn)
    const request = { path, turnStart: opening.length, messages, observed: 1, tools: [] }
    const { ids } = renderer.bridge(request)
    expect(renderer.decode(ids)).toContain(model.written)
    expect(renderer.images!.locate(ids, [seen])).toHaveLength(1)
  })

  it.each(models)('are not made by words that spell their tokens in $template', model => {
    const renderer = open(model)
    const spelled: Message = { role: 'user', content: `${model.written} what is this?` }
    const ids = renderer.render([spelled], [])
    expect(ids.some(id => renderer.images!.ids.has(id))).toBe(false)
    const both: Message = {
      role: 'user',
      content: [{ type: 'text', text: model.written }, image(84, 56)],
    }
    const shown = renderer.render([both], [])
    expect(renderer.images!.locate(shown, [both])).toHaveLength(1)
  })

  it('are told apart where several stand, each with its own size', () => {
    const renderer = open(models[0]!)
    const content = [image(84, 56), image(28, 28), image(280, 280)]
    const ids = renderer.render([{ role: 'user', content }], [])
    const places = renderer.images!.locate(ids, [{ role: 'user', content }])
    expect(places.map(({ start, end }) => end - start)).toEqual([6, 4, 100])
    expect(places.map(({ part }) => part)).toEqual(content)
  })

  it('are refused where the template shows none, the size is refused, or the bytes are elsewhere', () => {
    const renderer = open(models[0]!)
    const show = (part: ImagePart) => () => renderer.render([{ role: 'user', content: [part] }], [])
    expect(show(image(1, 300))).toThrow(/300 times longer/)
    expect(show({ type: 'image_url', image_url: { url: 'https://a.example/b.png' } })).toThrow(
      /bytes are not here: https:/,
    )
    const system: Message = { role: 'system', content: [image(28, 28)] }
    expect(() => renderer.render([system, seen], [])).toThrow(/cannot contain images/)
  })

  it('are not known of a model whose processor is not, which still reads text', () => {
    const images = { preprocessor: { image_processor_type: 'CLIPImageProcessor' } }
    const renderer = openTemplate('Qwen3.5-4B', { images })
    expect(renderer.images).toBeUndefined()
    expect(renderer.noImages).toMatch(/"CLIPImageProcessor"; layouts are known of/)
    expect(renderer.render([{ role: 'user', content: 'hello' }], []).length).toBeGreaterThan(3)
  })
})
