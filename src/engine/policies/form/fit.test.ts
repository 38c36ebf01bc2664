import { describe, expect, it } from 'vitest'
import type { Form, JsonSchema } from '../../../base/core/policy.ts'
import { validatorOf } from '../../environments/tools/json-schema.ts'
import { llamaForm, sglangForm, vllmForm } from './engines.ts'
import { fitOf } from './fit.ts'

const bare = (schema: JsonSchema): Form => ({ oneOf: [{ before: '', schema, after: '' }] })
const order: JsonSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 8 },
    count: { type: 'integer' },
    price: { type: 'number' },
    kind: { enum: ['big', 'small'] },
    tags: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 2 },
    inner: { $ref: '#/$defs/inner' },
  },
  required: ['name', 'count'],
  $defs: { inner: { type: 'object', properties: { ok: { type: ['boolean', 'null'] } } } },
}

describe('a form', () => {
  it.each([
    '{"name":"pear","count":3}',
    '{"name": "p\\"\\u00e9", "count": -12, "price": 1.5e-3, "kind": "big"}',
    '{"name":"a","count":0,"tags":["x", "y"],"inner":{"ok":null}}',
  ])('holds every beginning of a text that fits its schema: %s', text => {
    expect(validatorOf(order)(JSON.parse(text))).toEqual([])
    for (let end = 0; end < text.length; end++) {
      expect(fitOf(bare(order), text.slice(0, end)), text.slice(0, end)).toEqual({
        canGrow: true,
        isWhole: false,
      })
    }
    expect(fitOf(bare(order), text)).toEqual({ canGrow: false, isWhole: true })
  })

  it.each([
    '{"count"',
    '{"name":""',
    '{"name":"123456789',
    '{"name":"a","count":1.',
    '{"name":"a","count":01',
    '{"name":"a"}',
    '{"name":"a","count":1,"kind":"m',
    '{"name":"a","count":1,"tags":[]',
    '{"name":"a","count":1,"tags":["x","y",',
    '{"name":"a","count":1,"other"',
    '{"name":"a","count":1} ',
    ' {',
  ])('refuses what can become no such text: %s', text => {
    expect(fitOf(bare(order), text)).toEqual({ canGrow: false, isWhole: false })
  })

  it('may be one of several texts, each around a value', () => {
    const texts = ['sell', 'count'].map(name => ({
      before: `<call>${name} `,
      schema: { type: 'object' },
      after: '</call>',
    }))
    const form: Form = { oneOf: [texts[0]!, texts[1]!] }
    expect(fitOf(form, '<call>')).toEqual({ canGrow: true, isWhole: false })
    expect(fitOf(form, '<call>count {"pears": [1, {"a": true}]}</call>').isWhole).toBe(true)
    expect(fitOf(form, '<call>buy')).toEqual({ canGrow: false, isWhole: false })
  })

  it('may write a value as the keyword arguments of a call', () => {
    const properties = { all: { type: 'boolean' }, note: { type: 'string' } }
    const schema = { type: 'object', properties, required: ['all'] }
    const form: Form = { oneOf: [{ before: '[f(', schema, after: ')]', writes: 'keywords' }] }
    for (const whole of ['[f(all=True)]', '[f(all=False, note="x")]']) {
      expect(fitOf(form, whole)).toEqual({ canGrow: false, isWhole: true })
    }
    for (const wrong of ['[f()', '[f(all=true', '[f(note=']) {
      expect(fitOf(form, wrong)).toEqual({ canGrow: false, isWhole: false })
    }
  })

  it('is told to every engine by its own parameters', () => {
    const schema = { type: 'object' }
    const call: Form = { oneOf: [{ before: '<call>\n', schema, after: '</call>' }] }
    expect(sglangForm(bare(schema))).toEqual({ json_schema: '{"type":"object"}' })
    expect(vllmForm(bare(schema))).toEqual({ structured_outputs: { json: schema } })
    expect(llamaForm(bare(schema))).toEqual({ json_schema: schema })
    const tag = {
      type: 'tag',
      begin: '<call>\n',
      content: { type: 'json_schema', json_schema: schema },
      end: '</call>',
    }
    const text = JSON.stringify({ type: 'structural_tag', format: tag })
    expect(sglangForm(call)).toEqual({ structural_tag: text })
    expect(vllmForm(call)).toEqual({ structured_outputs: { structural_tag: text } })
    expect(llamaForm(call).grammar).toMatch(/^root ::= "<call>\\n" object "<\/call>"\nvalue ::= /)
    for (const told of [sglangForm, vllmForm, llamaForm]) {
      expect(told(undefined)).toEqual({})
    }
  })
})
