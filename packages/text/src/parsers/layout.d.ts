/** The place of the first character that is not a space, tab or line break. */
export declare function behindLayout(text: string, from: number): number;
