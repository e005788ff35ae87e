-- What the doors need for images: which message of its platform a message answers.
ALTER TABLE messages ADD COLUMN reply_to text;
