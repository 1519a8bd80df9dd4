-- Databases that ran 0004 still carry its triggers and the double entries they made.
DROP TRIGGER IF EXISTS orders_post_insert;
DROP TRIGGER IF EXISTS orders_post_delete;
