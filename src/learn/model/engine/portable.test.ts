import { expect, it } from 'vitest'
import { cosineAndSine, exponential } from './portable.ts'

it('agrees with the runtime where the runtime is right', () => {
  for (let step = -2000; step < 2000; step++) {
    const angle = step * 7.3
    const [cosine, sine] = cosineAndSine(angle)
    expect(Math.abs(cosine - Math.cos(angle))).toBeLessThan(1e-11)
    expect(Math.abs(sine - Math.sin(angle))).toBeLessThan(1e-11)
    const power = step / 200
    expect(Math.abs(exponential(power) / Math.exp(power) - 1)).toBeLessThan(1e-12)
  }
})
