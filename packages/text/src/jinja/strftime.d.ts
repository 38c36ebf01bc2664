/** Python's `datetime.strftime` in the C locale, for the local time of a date. */
export declare function formatTime(format: string, date: Date): string;
