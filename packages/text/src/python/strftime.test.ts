import { describe, expect, it } from 'vitest'
import { formatTime } from './strftime.ts'

const date = new Date(Date.UTC(2026, 0, 3, 15, 4, 5, 6))

describe('formatTime', () => {
  it.each([
    ['%d %b %Y', '03 Jan 2026'],
    ['%Y-%m-%dT%H:%M:%S.%f', '2026-01-03T15:04:05.006000'],
    ['%-d/%-m/%y %I %p', '3/1/26 03 PM'],
    ['%A %a %B %j', 'Saturday Sat January 003'],
    ['%U %W %V %G %u %w', '00 00 01 2026 6 6'],
    ['%e|%_H|%^a|%k|%l', ' 3|15|SAT|15| 3'],
    ['%c', 'Sat Jan  3 15:04:05 2026'],
    ['%F %T %D %R', '2026-01-03 15:04:05 01/03/26 15:04'],
    ['100%% %Q %z', '100% %Q '],
  ])('writes %s', (format, text) => {
    expect(formatTime(format, date)).toBe(text)
  })

  it('counts ISO weeks over the turn of the year', () => {
    expect(formatTime('%G-%V', new Date(Date.UTC(2027, 0, 1)))).toBe('2026-53')
    expect(formatTime('%G-%V', new Date(Date.UTC(2024, 11, 30)))).toBe('2025-01')
  })
})
