import { expect, it } from 'vitest'
import { parsePartName, splitItems } from './part-name.ts'

it('reads a name, a bare variant and options', () => {
  expect(parsePartName('tau:retail,root=a/b')).toEqual({
    name: 'tau',
    variant: 'retail',
    options: new Map([['root', 'a/b']]),
  })
  expect(parsePartName('desk:length=long').options.get('length')).toBe('long')
  expect(parsePartName('calculator')).toEqual({ name: 'calculator', options: new Map() })
  expect(parsePartName('tools:mcp=http://h:1/?a=b').options.get('mcp')).toBe('http://h:1/?a=b')
})

it('takes paths with commas and equals signs', () => {
  expect(parsePartName('tau:retail,root=/a\\,b/c=d').options.get('root')).toBe('/a,b/c=d')
  expect(parsePartName('harbor:/data/a=b,split=x')).toEqual({
    name: 'harbor',
    variant: '/data/a=b',
    options: new Map([['split', 'x']]),
  })
  expect(splitItems('one two\\ three', ' ')).toEqual(['one', 'two three'])
})

it.each([
  ['', /names nothing/],
  ['desk:', /empty item/],
  ['desk:a=1,b', /"b" in "desk:a=1,b" is not option=value/],
  ['desk:a=1,a=2', /gives a twice/],
  ['desk:=1', /not option=value/],
])('refuses %j', (text, message) => {
  expect(() => parsePartName(text)).toThrow(message)
})
