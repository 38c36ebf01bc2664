/** Holds back tokens that end a turn as long as only blanks follow them. */
export declare class EndKeeper {
    #private;
    constructor(emit: (text: string) => void, byTokens: boolean);
    /** Takes the next piece of text. */
    add(text: string, control: boolean): void;
    /** Nothing to do: what is certain was passed on when it was added. */
    run(): void;
    /** Something other than text follows: what was held is text. */
    flush(): void;
    /** Nothing follows: an unfinished marker is text, and so is what was held before it. */
    end(): void;
}
